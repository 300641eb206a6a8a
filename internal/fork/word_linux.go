package fork

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

const madvWipeOnFork = 18 // MADV_WIPEONFORK of <linux/mman.h>

// newWord returns a word that the kernel sets to 0 in a forked process, and true; or an ordinary one and false if the
// kernel is older than Linux 4.14 or does not support it.
func newWord() (*atomic.Uint64, bool) {
	page, err := syscall.Mmap(-1, 0, syscall.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return new(atomic.Uint64), false
	}
	if err := syscall.Madvise(page, madvWipeOnFork); err != nil {
		_ = syscall.Munmap(page)
		return new(atomic.Uint64), false
	}
	return (*atomic.Uint64)(unsafe.Pointer(&page[0])), true
}
