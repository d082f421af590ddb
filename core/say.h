/* Lines for the log, said by rooms that see no io: whoever runs them hands in where lines go. */
#ifndef CAIRN_CORE_SAY_H
#define CAIRN_CORE_SAY_H

enum say_level { SAY_DEBUG, SAY_INFO, SAY_WARN, SAY_ERROR };

struct say {
    void (*line)(void *ctx, enum say_level level, const char *room, const char *text);
    void *ctx;
};

/* One line: what happened in lower case, facts behind it as key=value, text from outside as
 * key=text_value(text).  LINE may be NULL: nobody listens. */
void say(const struct say *say, enum say_level level, const char *room, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
