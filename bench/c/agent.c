/* The agent that every relay is measured in front of.  Speaks newline-delimited JSON-RPC on stdio.
 *
 *   initialize / session/new / session/set_mode     answered at once; mode "usage" is answered behind a usage_update
 *   session/prompt whose text holds "bench CMD k=v ..." runs a script:
 *     bench stream n=200000 size=300 mode=burst|msg usage=100   session/update notifications
 *     bench stream n=3000 size=300 mode=paced us=1000           one every `us` microseconds, with the time in it;
 *                                                               usage=1: usage_updates of that kind; tick=1000:
 *                                                               wakes as seldom as that, and writes what is due
 *     bench big size=16777216                                   one huge session/update line
 *     bench sleep ms=2000                                       stops reading stdin, then answers
 *     bench wait                                                answers when the mode becomes "done"
 *     bench count                                               lines read so far, as a chunk
 *     bench echo n=K                                            echoes the next K lines raw
 *     bench exit code=3
 *   any other request                                           answered with an empty result
 *
 * BENCH_AGENT_PIDFILE: where to write the pid.  BENCH_AGENT_STARTUP_MS: CPU burnt before reading.
 * BENCH_AGENT_IGNORE_EOF=1: stays alive after stdin's end (an ill-behaved agent).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void put(const char *p, size_t n) {
    while (n) {
        ssize_t k = write(1, p, n);
        if (k < 0) {
            if (errno == EINTR) continue;
            _exit(0);
        }
        p += k;
        n -= k;
    }
}

static const char *find(const char *hay, size_t n, const char *needle) {
    return memmem(hay, n, needle, strlen(needle));
}

/* the raw token after "key" : */
static int value_of(const char *line, size_t n, const char *key, const char **v, size_t *vn) {
    const char *p = find(line, n, key), *end = line + n;
    if (!p) return 0;
    p += strlen(key);
    while (p < end && (*p == ' ' || *p == ':' || *p == '\t')) p++;
    *v = p;
    if (p < end && *p == '"') {
        p++;
        while (p < end && *p != '"') p++;
        p++;
    } else
        while (p < end && *p != ',' && *p != '}' && *p != ' ') p++;
    *vn = p - *v;
    return 1;
}

static long arg(const char *cmd, const char *key, long dflt) {
    char k[32];
    snprintf(k, sizeof k, " %s=", key);
    const char *p = strstr(cmd, k);
    return p ? strtol(p + strlen(k), NULL, 10) : dflt;
}

static const char PRE[] = "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"sess_0123456789abcdef\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"";
static const char POST[] = "\"}}}}\n";
static const char LOREM[] = "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore magna aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo consequat. Duis aute irure dolor in reprehenderit in voluptate velit esse cillum dolore eu fugiat nulla pariatur. ";
static const char USAGE[] = "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"sess_0123456789abcdef\",\"update\":{\"sessionUpdate\":\"usage_update\",\"used\":%ld,\"size\":200000,\"cost\":{\"amount\":%.6f,\"currency\":\"USD\"}}}}\n";

static const char USAGE_AT[] = "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"sess_0123456789abcdef\",\"update\":{\"sessionUpdate\":\"usage_update\",\"used\":%ld,\"size\":200000,\"cost\":{\"amount\":%.6f,\"currency\":\"USD\"},\"_meta\":{\"ns\":\"%020llu\"}}}}\n";

/* one chunk notification of about `size` bytes; its text starts "SEQ NS " */
static size_t chunk(char *b, long seq, uint64_t ns, long size) {
    size_t o = sizeof PRE - 1;
    memcpy(b, PRE, o);
    o += sprintf(b + o, "%08ld %020llu ", seq, (unsigned long long)ns);
    long pad = size - (long)o - (long)(sizeof POST - 1);
    while (pad > 0) {
        size_t k = pad < (long)sizeof LOREM - 1 ? (size_t)pad : sizeof LOREM - 1;
        memcpy(b + o, LOREM, k);
        o += k;
        pad -= k;
    }
    memcpy(b + o, POST, sizeof POST - 1);
    return o + sizeof POST - 1;
}

static void stream(const char *cmd) {
    long n = arg(cmd, "n", 1000), size = arg(cmd, "size", 300), us = arg(cmd, "us", 1000), usage = arg(cmd, "usage", 100);
    long together = us ? arg(cmd, "tick", us) / us : 1;
    int burst = !!strstr(cmd, "mode=burst"), paced = !!strstr(cmd, "mode=paced");
    char *b = malloc(200 * (size + 512)), *one = malloc(size + 512), use[512];
    size_t on = chunk(one, 0, 0, size), o = 0, per = 0;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    if (burst) { /* one block of messages, written over and over */
        for (per = 0; per < 200 && o + on < 61440; per++)
            if (usage && per % usage == (size_t)usage - 1) o += sprintf(b + o, USAGE, 1000L, 0.0001);
            else memcpy(b + o, one, on), o += on;
        while (n >= (long)per) put(b, o), n -= per;
    }
    for (long i = 0; i < n; i++) {
        if (paced) {
            t.tv_nsec += us * 1000;
            while (t.tv_nsec >= 1000000000) t.tv_nsec -= 1000000000, t.tv_sec++;
            if (together < 2 || i % together == together - 1) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
            if (usage == 1) {
                put(use, sprintf(use, USAGE_AT, 1000 + i, i * 0.0001, (unsigned long long)now_ns()));
                continue;
            }
            on = chunk(one, i, now_ns(), size);
            put(one, on);
        } else if (usage && i % usage == usage - 1) {
            put(use, sprintf(use, USAGE, 1000 + i, i * 0.0001));
        } else
            put(one, on);
    }
    free(b);
    free(one);
}

static void big(long size) {
    static char blk[65536];
    char post[16];
    long left = size - (long)(sizeof PRE + sizeof POST) + 2;
    memset(blk, 'A', sizeof blk);
    memcpy(blk, PRE, sizeof PRE - 1);
    long k = left < (long)(sizeof blk - sizeof PRE + 1) ? left : (long)(sizeof blk - sizeof PRE + 1);
    put(blk, sizeof PRE - 1 + k);
    left -= k;
    memset(blk, 'A', sizeof PRE);
    for (; left > 0; left -= k) {
        k = left < (long)sizeof blk ? left : (long)sizeof blk;
        put(blk, k);
    }
    memcpy(post, POST, sizeof POST - 1);
    put(post, sizeof POST - 1);
}

static void reply(const char *id, size_t idn, const char *result, size_t pad) {
    char b[8192];
    size_t o = sprintf(b, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":%s", (int)idn, id, result);
    if (pad > o + 24) {
        o--; /* reopen the object */
        o += sprintf(b + o, "%s\"_meta\":{\"pad\":\"", b[o - 1] == '{' ? "" : ",");
        while (o + 5 < pad) b[o++] = 'x';
        o += sprintf(b + o, "\"}}");
    }
    b[o++] = '}';
    b[o++] = '\n';
    put(b, o);
}

static long lines, echo_left;
static char waiting[64]; /* id of a prompt that is answered when the mode becomes "done" */

static void line(char *l, size_t n) {
    lines++;
    if (echo_left > 0) {
        echo_left--;
        put(l, n);
        return;
    }
    const char *m, *id;
    size_t mn, idn;
    size_t head = n < 4096 ? n : 4096;
    if (!value_of(l, head, "\"method\"", &m, &mn) && !value_of(l, n, "\"method\"", &m, &mn)) return;
    if (!value_of(l, head, "\"id\"", &id, &idn) && !(mn == 16 && value_of(l, n, "\"id\"", &id, &idn))) return;
    if (mn == 16 && !memcmp(m, "\"session/prompt\"", 16)) {
        const char *c = find(l, n, "bench ");
        char cmd[256] = "";
        if (c) {
            size_t k = (size_t)(l + n - c) < 255 ? (size_t)(l + n - c) : 255;
            memcpy(cmd, c, k);
            cmd[k] = 0;
            char *q = strchr(cmd, '"');
            if (q) *q = 0;
        }
        if (!strncmp(cmd, "bench stream", 12)) stream(cmd);
        else if (!strncmp(cmd, "bench big", 9)) big(arg(cmd, "size", 1 << 20));
        else if (!strncmp(cmd, "bench sleep", 11)) usleep(arg(cmd, "ms", 1000) * 1000);
        else if (!strncmp(cmd, "bench exit", 10)) _exit((int)arg(cmd, "code", 0));
        else if (!strncmp(cmd, "bench echo", 10)) echo_left = arg(cmd, "n", 0);
        else if (!strncmp(cmd, "bench count", 11)) {
            char b[512];
            int k = sprintf(b, "%scount=%ld %s", PRE, lines, POST);
            put(b, k);
        } else if (!strncmp(cmd, "bench wait", 10) && idn < sizeof waiting) {
            memcpy(waiting, id, idn);
            waiting[idn] = 0;
            return;
        }
        reply(id, idn, "{\"stopReason\":\"end_turn\",\"usage\":{\"totalTokens\":1300,\"inputTokens\":1000,\"outputTokens\":300}}", 200);
    } else if (mn == 12 && !memcmp(m, "\"initialize\"", 12))
        reply(id, idn, "{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":false,\"promptCapabilities\":{\"image\":true}},\"authMethods\":[]}", 0);
    else if (mn == 13 && !memcmp(m, "\"session/new\"", 13))
        reply(id, idn, "{\"sessionId\":\"sess_0123456789abcdef\",\"models\":{\"currentModelId\":\"claude-sonnet-5\",\"availableModels\":[{\"modelId\":\"claude-sonnet-5\",\"name\":\"Sonnet\"}]}}", 0);
    else {
        if (find(l, head, "\"modeId\":\"usage\"")) {
            static long told;
            char use[512];
            told++;
            put(use, sprintf(use, USAGE, 1000 + told, told * 0.0001));
        }
        if (*waiting && find(l, head, "\"modeId\":\"done\"")) {
            reply(waiting, strlen(waiting), "{\"stopReason\":\"end_turn\"}", 0);
            *waiting = 0;
        }
        reply(id, idn, "{}", 200);
    }
}

int main(void) {
    const char *pf = getenv("BENCH_AGENT_PIDFILE"), *ms = getenv("BENCH_AGENT_STARTUP_MS");
    if (pf && *pf) {
        FILE *f = fopen(pf, "w");
        if (f) fprintf(f, "%d", getpid()), fclose(f);
    }
    if (ms) {
        uint64_t end = now_ns() + (uint64_t)atol(ms) * 1000000;
        while (now_ns() < end) {}
    }
    size_t cap = 1 << 18, len = 0, scan = 0;
    char *buf = malloc(cap);
    for (;;) {
        if (cap - len < 65536) buf = realloc(buf, cap *= 2);
        ssize_t k = read(0, buf + len, cap - len);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) break;
        len += k;
        size_t start = 0;
        char *nl;
        while ((nl = memchr(buf + (scan > start ? scan : start), '\n', len - (scan > start ? scan : start)))) {
            size_t end = nl - buf + 1;
            line(buf + start, end - start);
            start = scan = end;
        }
        memmove(buf, buf + start, len - start);
        len -= start;
        scan = len;
    }
    if (getenv("BENCH_AGENT_IGNORE_EOF")) for (;;) pause();
    return 0;
}
