// How near a limit something is, as `budget list` colours it.

/**
 * A limit that is reached is red.
 * @param {number} percent
 */
export function levelOf(percent) {
  return percent >= 100 ? "red" : percent >= 90 ? "orange" : percent >= 75 ? "yellow" : "normal";
}
