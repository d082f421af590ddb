#include "agent/sim.h"
const char *sim_story_text(const char *name)
{
    (void)name;
    return NULL;
}
const char *sim_story_name(size_t number)
{
    (void)number;
    return NULL;
}
const char *sim_story_about(const char *name)
{
    (void)name;
    return NULL;
}
