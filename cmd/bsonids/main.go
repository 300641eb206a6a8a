// Command bsonids shows what UUIDs a MongoDB deployment holds, and converts them from one representation to another.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(interruptible(os.Args[1:]))
}

// interruptible runs the command line. The first interrupt asks it to stop in good order; the second one ends the
// process as if nobody listened.
func interruptible(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return run(ctx, args, os.Stdout, os.Stderr)
}
