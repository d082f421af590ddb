/*
 * What templates ask of those who know more than the node's files: services that are registered,
 * and variables.
 */
#ifndef CAIRN_SPEC_QUESTION_H
#define CAIRN_SPEC_QUESTION_H

enum { QUESTION_NAMESPACE_SIZE = 129, QUESTION_NAME_SIZE = 513 }; /* each with its NUL */

/*    kind       in messages   is answered by, as JSON with the names of Nomad's API */
#define SPEC_QUESTIONS(X)                                                                          \
    X(SERVICES,                                                                                    \
      "services")         /* a list of the names that are registered (ServiceRegistrationStub) */  \
    X(SERVICE, "service") /* all of that name (ServiceRegistration) */                             \
    X(VARIABLE, "variable")   /* that with this path (VariableDecrypted); null: there is none */   \
    X(VARIABLES, "variables") /* those whose paths begin so (VariableMetadata) */
enum spec_question_kind {
#define X(name, text) QUESTION_##name,
    SPEC_QUESTIONS(X)
#undef X
        QUESTION_KINDS,
};

/* A task, and the token that says so: a secret, "": it has none. */
struct spec_asker {
    const char *namespace, *job, *group, *task, *token;
};

struct spec_question {
    enum spec_question_kind kind;
    const char *namespace;
    const char *name; /* of the service, the path, or what paths begin with */
    const struct spec_asker *asker;
};

#endif
