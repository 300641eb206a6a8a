package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// user is the number of an account without rights, the same one that distroless images use.
	user = 65532
	// dataDir is the working directory, where a conversion keeps its state and its undo log.
	dataDir = "data"
)

type metadata struct {
	version, revision string
	created           time.Time
}

// build returns an index with one image for each platform. An image holds the program, the certificate authorities that
// Mozilla trusts, the licences, and an empty directory that the user may write to.
func build(meta metadata, texts, programs map[string][]byte) (v1.ImageIndex, error) {
	if len(programs) == 0 {
		return nil, errors.New("no platform is given")
	}
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		platform, err := v1.ParsePlatform(name)
		if err != nil {
			return nil, err
		}
		if platform.OS == "" || platform.Architecture == "" {
			return nil, fmt.Errorf("platform %q: want OS/ARCHITECTURE", name)
		}
		img, err := imageOf(meta, *platform, texts, programs[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
	}
	return mutate.Annotations(index, meta.labels()).(v1.ImageIndex), nil
}

func (m metadata) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.created":     m.created.UTC().Format(time.RFC3339),
		"org.opencontainers.image.description": "Shows and converts the UUIDs of a MongoDB deployment",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.revision":    m.revision,
		"org.opencontainers.image.source":      "https://github.com/bsonids/bsonids",
		"org.opencontainers.image.title":       "bsonids",
		"org.opencontainers.image.version":     m.version,
	}
}

func imageOf(meta metadata, platform v1.Platform, texts map[string][]byte, program []byte) (v1.Image, error) {
	content, err := archive(meta.created, texts, program)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{
		Created: v1.Time{Time: meta.created.UTC()}, CreatedBy: "bsonids " + meta.version,
	}})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Created = v1.Time{Time: meta.created.UTC()}
	config.OS, config.Architecture, config.Variant = platform.OS, platform.Architecture, platform.Variant
	config.Config = v1.Config{
		Entrypoint: []string{"/bsonids"},
		User:       fmt.Sprintf("%d:%d", user, user),
		WorkingDir: "/" + dataDir,
		Labels:     meta.labels(),
	}
	return mutate.ConfigFile(img, config)
}

// archive returns the only layer.
func archive(created time.Time, texts map[string][]byte, program []byte) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(h tar.Header, content []byte) error {
		h.ModTime, h.Format, h.Size = created.UTC().Truncate(time.Second), tar.FormatPAX, int64(len(content))
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err := w.Write(content)
		return err
	}
	directory := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755} }
	file := func(name string, mode int64) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode}
	}

	data := directory(dataDir)
	data.Uid, data.Gid = user, user
	temporary := directory("tmp")
	temporary.Mode = 0o1777
	errs := []error{
		add(file("bsonids", 0o755), program),
		add(data, nil),
		add(directory("etc"), nil),
		add(directory("etc/ssl"), nil),
		add(directory("etc/ssl/certs"), nil),
		add(file("etc/ssl/certs/ca-certificates.crt", 0o644), authorities()),
		add(directory("licenses"), nil),
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		errs = append(errs, add(file("licenses/"+name, 0o644), texts[name]))
	}
	errs = append(errs, add(temporary, nil), w.Close())
	return b.Bytes(), errors.Join(errs...)
}

// authorities returns the certificates of the authorities in PEM. Without them the program could not verify a server's
// certificate. Those with further constraints, which a PEM file cannot express, are left out.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a Buffer does not fail
		}
	}
	return b.Bytes()
}
