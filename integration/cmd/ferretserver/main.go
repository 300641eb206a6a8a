// Command ferretserver runs FerretDB: a server for the MongoDB wire protocol that keeps its data in
// SQLite files. The image of integration/container contains only this program.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/bsonids/bsonids/integration/embedded"
)

func main() {
	addr := flag.String("addr", ":27017", "address to listen on")
	dir := flag.String("dir", "/data/db", "directory of the data; if it is empty, a temporary one that is removed at the end, whose writes do not wait for the disk")
	// Tests start every image with the arguments of mongod. They use a server that does not know
	// replSetInitiate as a standalone server.
	flag.String("replSet", "", "accepted as mongod does, without effect")
	flag.Parse()
	if err := serve(*addr, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "ferretserver:", err)
		os.Exit(1)
	}
}

func serve(addr, dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := embedded.Start(embedded.WithAddr(addr), embedded.WithDir(dir))
	if err != nil {
		return err
	}
	// testcontainers waits for this text, which is the text of mongod.
	fmt.Printf("Waiting for connections on %s, data in %s\n", s.Addr(), cmp.Or(dir, "a temporary directory"))
	<-ctx.Done()
	fmt.Println("Shutting down")
	return s.Close()
}
