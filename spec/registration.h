/*
 * Registrations of services, as Nomad's API shows them (ServiceRegistration): which of them a key
 * chooses.
 */
#ifndef CAIRN_SPEC_REGISTRATION_H
#define CAIRN_SPEC_REGISTRATION_H

#include <jansson.h>
#include <stdint.h>

enum { REGISTRATION_RANK_SIZE = 32 };

/* The place of REGISTRATION among others for KEY: who has the lowest is chosen first, and stays so
 * whoever else comes and goes (rendezvous hashing; nomad v2.0.5 nomad/structs
 * ServiceRegistration.HashWith, byte for byte). */
void registration_rank(const json_t *registration, const char *key,
                       uint8_t to[REGISTRATION_RANK_SIZE]);

#endif
