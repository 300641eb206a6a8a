// Command image writes a container image of the command bsonids as an OCI layout, without a daemon and without a base
// image. The same input gives the same bytes.
//
// usage: image -out DIR -version VERSION -revision COMMIT -created TIME -notices FILE -licence FILE PLATFORM=BINARY…
//
// A platform is an operating system and an architecture, such as linux/arm64. TIME is in RFC 3339.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

func main() {
	out := flag.String("out", "", "`DIR` of the layout, which must not exist")
	meta := metadata{}
	flag.StringVar(&meta.version, "version", "", "`VERSION` of the program")
	flag.StringVar(&meta.revision, "revision", "", "`COMMIT` of the source")
	created := flag.String("created", "", "`TIME` of the commit")
	notices := flag.String("notices", "", "`FILE` with the notices of the program's modules")
	licence := flag.String("licence", "", "`FILE` with the licence of the program")
	flag.Parse()
	if err := run(*out, meta, *created, *licence, *notices, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(out string, meta metadata, created, licence, notices string, binaries []string) error {
	var err error
	if meta.created, err = time.Parse(time.RFC3339, created); err != nil {
		return err
	}
	texts := make(map[string][]byte)
	for name, file := range map[string]string{"LICENSE": licence, "THIRD_PARTY_NOTICES": notices} {
		if texts[name], err = os.ReadFile(file); err != nil {
			return err
		}
	}
	programs := make(map[string][]byte)
	for _, b := range binaries {
		platform, file, found := strings.Cut(b, "=")
		if !found {
			return fmt.Errorf("%q: want PLATFORM=BINARY", b)
		}
		if programs[platform], err = os.ReadFile(file); err != nil {
			return err
		}
	}
	index, err := build(meta, texts, programs)
	if err != nil {
		return err
	}
	return write(out, index)
}

func write(dir string, index v1.ImageIndex) error {
	if _, err := os.Stat(dir); err == nil {
		return fmt.Errorf("%s exists already", dir)
	}
	_, err := layout.Write(dir, index)
	return err
}
