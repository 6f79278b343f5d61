// See heap_pages.h.
#include "runtime/app/heap_pages.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace reflex::app {

void put_heap_in_huge_pages() {
  // Why: six months of a cluster of 2,000 nodes need 150 MB; what comes beyond it has small pages.
  constexpr int kHeapBytes = 192 << 20;
  // Source: glibc mallopt(3): asking for one of these ends the adjustment of the others, so that
  // blocks from 128 KiB on would each be mapped and unmapped. Why 2 MiB: lists that long grow by
  // remapping, and what they were leaves no hole.
  constexpr int kMappedFromBytes = 2 << 20;
  constexpr uintptr_t kPage = uintptr_t{2} << 20;
  rlimit space{};
  if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur != RLIM_INFINITY) return;
  const auto before = reinterpret_cast<uintptr_t>(sbrk(0));
  mallopt(M_TOP_PAD, kHeapBytes);
  mallopt(M_TRIM_THRESHOLD, kHeapBytes);
  mallopt(M_MMAP_THRESHOLD, kMappedFromBytes);
  // More than is left: the heap grows now, by the pad as well. Written to, or it is left out.
  void* grown = malloc(1 << 20);
  if (grown == nullptr) return;
  *static_cast<volatile char*>(grown) = 0;
  free(grown);
  const auto end = reinterpret_cast<uintptr_t>(sbrk(0));
  const uintptr_t begin = (before + kPage - 1) & ~(kPage - 1);
  if (end <= begin) return;
  (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace reflex::app
