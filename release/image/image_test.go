package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const created = "2026-01-02T03:04:05Z"

// makeLayout writes a layout from files and returns its directory.
func makeLayout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	name := func(s string) string { return filepath.Join(dir, s) }
	for file, content := range map[string]string{"licence": "the licence", "notices": "the notices", "amd64": "program A", "arm64": "program B"} {
		if err := os.WriteFile(name(file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := run(name("layout"), metadata{version: "1.2.3", revision: "abc"}, created, name("licence"), name("notices"),
		[]string{"linux/arm64=" + name("arm64"), "linux/amd64=" + name("amd64")})
	if err != nil {
		t.Fatal(err)
	}
	return name("layout")
}

func images(t *testing.T, dir string) map[string]v1.Image {
	t.Helper()
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]v1.Image)
	for _, d := range manifest.Manifests {
		img, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		found[d.Platform.String()] = img
	}
	return found
}

// files lists what an image holds, with mode, owner and time, and returns the contents.
func files(t *testing.T, img v1.Image) (list []string, contents map[string]string) {
	t.Helper()
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v, want 1", len(layers), err)
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	contents = make(map[string]string)
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return list, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%s %d:%d %s", h.FileInfo().Mode(), h.Uid, h.Gid, h.Name))
		if got := h.ModTime.UTC().Format("2006-01-02T15:04:05Z"); got != created {
			t.Errorf("%s: time %s, want %s", h.Name, got, created)
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		contents[h.Name] = string(content)
	}
}

func TestFiles(t *testing.T) {
	found := images(t, makeLayout(t))
	for platform, program := range map[string]string{"linux/amd64": "program A", "linux/arm64": "program B"} {
		t.Run(platform, func(t *testing.T) {
			if found[platform] == nil || len(found) != 2 {
				t.Fatalf("images %v", found)
			}
			list, contents := files(t, found[platform])
			want := []string{
				"-rwxr-xr-x 0:0 bsonids",
				"drwxr-xr-x 65532:65532 data/",
				"drwxr-xr-x 0:0 etc/",
				"drwxr-xr-x 0:0 etc/ssl/",
				"drwxr-xr-x 0:0 etc/ssl/certs/",
				"-rw-r--r-- 0:0 etc/ssl/certs/ca-certificates.crt",
				"drwxr-xr-x 0:0 licenses/",
				"-rw-r--r-- 0:0 licenses/LICENSE",
				"-rw-r--r-- 0:0 licenses/THIRD_PARTY_NOTICES",
				"dtrwxrwxrwx 0:0 tmp/",
			}
			if !slices.Equal(list, want) {
				t.Errorf("files\n%s\nwant\n%s", strings.Join(list, "\n"), strings.Join(want, "\n"))
			}
			if contents["bsonids"] != program || contents["licenses/LICENSE"] != "the licence" || contents["licenses/THIRD_PARTY_NOTICES"] != "the notices" {
				t.Error("the contents of the files are not those given")
			}
			pool := x509.NewCertPool()
			if !pool.AppendCertsFromPEM([]byte(contents["etc/ssl/certs/ca-certificates.crt"])) {
				t.Error("no certificates")
			}
			config, err := found[platform].ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if config.OS+"/"+config.Architecture != platform || config.Config.User != "65532:65532" ||
				config.Config.WorkingDir != "/data" || !slices.Equal(config.Config.Entrypoint, []string{"/bsonids"}) ||
				config.Config.Labels["org.opencontainers.image.version"] != "1.2.3" {
				t.Errorf("configuration %+v", config)
			}
		})
	}
}

// The same input gives the same bytes, file by file.
func TestReproducible(t *testing.T) {
	tree := func() map[string][]byte {
		dir, found := makeLayout(t), make(map[string][]byte)
		err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, _ := filepath.Rel(dir, name)
			found[rel], err = os.ReadFile(name)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	one, two := tree(), tree()
	if len(one) != len(two) || len(one) < 6 {
		t.Fatalf("%d files and %d", len(one), len(two))
	}
	for name := range one {
		if !bytes.Equal(one[name], two[name]) {
			t.Errorf("%s differs", name)
		}
	}
}

func TestRefused(t *testing.T) {
	there := t.TempDir()
	file := filepath.Join(there, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		out, created, licence string
		binaries              []string
		want                  string
	}{
		{"new", created, file, nil, "no platform"},
		{"new", created, file, []string{"linux/amd64"}, "want PLATFORM=BINARY"},
		{"new", created, file, []string{"linux=" + file}, "want OS/ARCHITECTURE"},
		{"new", created, file, []string{"linux/amd64=" + file + "missing"}, "no such file"},
		{"new", created, file + "missing", []string{"linux/amd64=" + file}, "no such file"},
		{"new", "yesterday", file, []string{"linux/amd64=" + file}, "yesterday"},
		{"", created, file, []string{"linux/amd64=" + file}, "exists already"},
	} {
		err := run(filepath.Join(there, tt.out), metadata{}, tt.created, tt.licence, file, tt.binaries)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
		if _, err := os.Stat(filepath.Join(there, "new")); err == nil {
			t.Errorf("%+v: a layout is there", tt)
		}
	}
}
