# The versions of the tools that .ci/run builds, each a Go module. Sourced.
actionlint=github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
crane_module=github.com/google/go-containerregistry/cmd/crane@v0.22.1
goreleaser=github.com/goreleaser/goreleaser/v2@v2.16.0
misspell=github.com/golangci/misspell/cmd/misspell@v0.8.0
govulncheck=golang.org/x/vuln/cmd/govulncheck@v1.8.0
staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2

oldest_go=go$(awk '$1 == "go" { print $2 }' go.mod)
newest_go=go1.27.1
pymongo=4.20.0
