/* The clients of many relays at once, in one process that costs next to nothing: sends each a prompt for a burst every
 * period, and checks every line that comes back, byte for byte and in order.
 *
 *   clients SECONDS LINES US PERIOD_MS TO:FROM...      file descriptors of each relay; one line of JSON on stdout
 *
 * A burst is LINES chunks of 300 bytes of the bench agent, one every US microseconds.  One that is due while the last
 * one still runs is skipped and counted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 300, ROOM = 1 << 17, GRACE = 120, DELAYS = 64 * 8 };

static const char PRE[] = "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"sess_0123456789abcdef\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"";
enum { AT = sizeof PRE - 1, TEXT = AT + 8 + 1 + 20 + 1 }; /* of the number, and of what follows it and the time */

struct client {
    int to, from, busy;
    uint64_t due;
    long next, id;
    size_t len;
    char buf[ROOM];
};

static char expected[SIZE]; /* a chunk; what differs is left out of comparing */
static long n_lines, us, relayed, lost, disordered, changed, turns, skipped, offered, others;
static uint64_t delays[DELAYS], most;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void die(const char *what) {
    fprintf(stderr, "clients: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t digits(const char *p, int n) {
    uint64_t value = 0;
    while (n--) value = value * 10 + (*p++ - '0');
    return value;
}

/* eight slots to each power of two */
static int slot(uint64_t ns) {
    if (ns < 8) return (int)ns;
    int power = 63 - __builtin_clzll(ns);
    return power * 8 + (int)((ns >> (power - 3)) & 7);
}

static double part(double of) {
    uint64_t all = 0, seen = 0;
    for (int i = 0; i < DELAYS; i++) all += delays[i];
    for (int i = 0; i < DELAYS; i++)
        if ((seen += delays[i]) >= all * of && seen) return i < 24 ? i : (double)(1ull << (i / 8)) * (1 + (i % 8 + .5) / 8);
    return 0;
}

static void begin(struct client *c) {
    char prompt[512];
    int k = snprintf(prompt, sizeof prompt,
                     "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"method\":\"session/prompt\",\"params\":{\"sessionId\":"
                     "\"sess_0123456789abcdef\",\"prompt\":[{\"type\":\"text\",\"text\":\"bench stream n=%ld size=%d "
                     "mode=paced us=%ld tick=1000 usage=0\"}]}}\n", c->id++, n_lines, SIZE, us);
    if (write(c->to, prompt, k) != k) die("write");
    c->busy = 1;
    c->next = 0;
    offered += n_lines;
}

static void line(struct client *c, const char *l, size_t n, uint64_t now) {
    if (n > TEXT && !memcmp(l, PRE, AT)) {
        long number = (long)digits(l + AT, 8);
        uint64_t delay = now - digits(l + AT + 9, 20);
        relayed++;
        if (number > c->next) lost += number - c->next;
        disordered += number < c->next;
        c->next = number + 1;
        changed += n != SIZE || memcmp(l + TEXT, expected + TEXT, SIZE - TEXT);
        if (delay > most) most = delay;
        delays[slot(delay)]++;
    } else if (memmem(l, n, "\"stopReason\"", 12)) {
        lost += n_lines - c->next;
        turns++;
        c->busy = 0;
    } else
        others++;
}

static void take(struct client *c) {
    ssize_t k = read(c->from, c->buf + c->len, ROOM - c->len);
    if (k < 0 && errno == EINTR) return;
    if (k <= 0) die("a relay ended");
    uint64_t now = now_ns();
    char *start = c->buf, *end = c->buf + c->len + k, *nl, *scan = c->buf + c->len;
    while ((nl = memchr(scan, '\n', end - scan))) {
        line(c, start, nl + 1 - start, now);
        start = scan = nl + 1;
    }
    c->len = end - start;
    if (c->len == ROOM) die("a line that does not end");
    memmove(c->buf, start, c->len);
}

static void expect(void) {
    static const char LOREM[] = "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore magna aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo consequat. ";
    static const char POST[] = "\"}}}}\n";
    memcpy(expected + TEXT, LOREM, SIZE - TEXT - (sizeof POST - 1));
    memcpy(expected + SIZE - (sizeof POST - 1), POST, sizeof POST - 1);
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    double seconds = atof(argv[1]);
    n_lines = atol(argv[2]), us = atol(argv[3]);
    uint64_t period = (uint64_t)atol(argv[4]) * 1000000, began = now_ns(), end = began + (uint64_t)(seconds * 1e9), now;
    int count = argc - 5, busy = 1, queue = epoll_create1(0);
    struct client *all = calloc(count, sizeof *all);
    expect();
    for (int i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = all + i};
        if (sscanf(argv[5 + i], "%d:%d", &all[i].to, &all[i].from) != 2) return 2;
        all[i].due = began + period * i / count; /* evenly out of step */
        all[i].id = 1000;
        if (epoll_ctl(queue, EPOLL_CTL_ADD, all[i].from, &event)) die("epoll");
    }
    while ((now = now_ns()) < end || busy) {
        if (now > end + GRACE * 1000000000ull) die("bursts that do not end");
        busy = 0;
        for (int i = 0; i < count; i++) {
            struct client *c = all + i;
            if (now < end && now >= c->due) {
                c->due += period;
                if (c->busy) skipped++, offered += n_lines;
                else begin(c);
            }
            busy |= c->busy;
        }
        struct epoll_event events[64];
        int ready = epoll_wait(queue, events, 64, 2);
        for (int i = 0; i < ready; i++) take(events[i].data.ptr);
    }
    printf("{\"relayed\":%ld,\"offered\":%ld,\"lost\":%ld,\"disordered\":%ld,\"changed\":%ld,\"turns\":%ld,\"skipped\":%ld,"
           "\"others\":%ld,\"seconds\":%.3f,\"delay_p50_ms\":%.3f,\"delay_p99_ms\":%.3f,\"delay_most_ms\":%.3f}\n",
           relayed, offered, lost, disordered, changed, turns, skipped, others, (now_ns() - began) / 1e9,
           part(.5) / 1e6, part(.99) / 1e6, most / 1e6);
    return 0;
}
