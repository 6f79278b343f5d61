// The heap of a batch command in huge pages: a replay touches 150 MB at random, and looking up the
// addresses of 4 KiB pages is a tenth of its time.
#pragma once

namespace reflex::app {

/// For commands that read all of their input and end (`run`, `learn`, `backtest`); before they make
/// threads. Not for the daemon: what it forks is copied by the page. Only advice: where the kernel
/// has no transparent huge pages nothing changes. Asks for address space, not for memory; where that
/// is limited (ulimit -v) it does nothing.
void put_heap_in_huge_pages();

}  // namespace reflex::app
