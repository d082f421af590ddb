/* Private to the room. */
#ifndef CAIRN_AGENT_CONFIG_PART_H
#define CAIRN_AGENT_CONFIG_PART_H

#include "agent/config/config.h"

/* Why CIDR is no list of networks, NULL: it is one. */
const char *config_cidr_fault(const char *cidr);

/* The same for the one network that a bridge gives out addresses of; "" is none, and for IPv6
 * that is fine. */
const char *config_subnet_fault(const char *subnet, bool six);

/* Takes what TEXT, as in "127.0.0.1 unix:///run/cairn/api.sock", says of where to listen; why it
 * says nothing, NULL: it does. */
const char *config_set_addresses(struct config *config, const char *text);

/* Which addresses it is to be, whatever said so; what addresses says wins, as with Nomad. */
int config_finish_addresses(struct config *config, struct err *err);

/* Gives each server a port.  ERR_INVALID: one is no address. */
int config_finish_servers(struct config *config, struct err *err);

/* Where Consul's agent is and with which token it is asked, whatever said so.  ERR_INVALID: that is
 * no address; what else keeps a file of a token from being read. */
int config_finish_consul(struct config *config, struct err *err);

void config_free_plugins(struct config *config);

/* Reads one file, HCL or JSON. */
int config_read_file(struct config *config, const char *path, struct err *err);

#endif
