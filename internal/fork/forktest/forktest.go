// Package forktest forks a Go process in a test, as a C program does that has loaded a Go library.
package forktest

// The parts of a test, in the order in which they run.
const (
	Before     = iota // in the process before it forks
	Parent            // in the process after it forked
	Child             // in the forked process
	Grandchild        // in the process that the forked one forked after its part
	parts
)
