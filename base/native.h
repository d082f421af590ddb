/* How the kernel calls this machine's own calls, for filters of them (seccomp(2)): calls of other
 * kinds of programs have other numbers, from FOREIGN_FROM on or of another machine, and are no
 * way around one. */
#ifndef CAIRN_BASE_NATIVE_H
#define CAIRN_BASE_NATIVE_H

#include <linux/audit.h>
#include <stdint.h>

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#define FOREIGN_FROM 0x40000000u /* the x32 calls */
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#define FOREIGN_FROM UINT32_MAX
#else
#error "say how this machine numbers its calls"
#endif

#endif
