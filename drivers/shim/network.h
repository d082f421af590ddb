/*
 * The network of an alloc, for a container of an Engine that takes no path of a namespace.
 *
 * An Engine lets a container share the network of another one, which it finds by that one's first
 * process.  So cairn-shim runs as that process, in a container of the same image that has nothing
 * else: it enters the namespace, which was bound beside it, and sleeps.  Nothing of the Engine's
 * own networks is involved, no image has to be fetched for it, and it can be made again at any
 * time, since the namespace is not its.
 */
#ifndef CAIRN_DRIVERS_SHIM_NETWORK_H
#define CAIRN_DRIVERS_SHIM_NETWORK_H

/* Where the two are in its container; the first is its own name, too. */
#define NETWORK_PROGRAM "/.cairn-network"
#define NETWORK_NAMESPACE "/.cairn-namespace"

#endif
