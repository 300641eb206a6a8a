package golangci_test

import (
	"testing"

	"github.com/golangci/plugin-module-register/register"

	bsonids "github.com/bsonids/bsonids/analysis"
	_ "github.com/bsonids/bsonids/analysis/golangci"
)

func TestPlugin(t *testing.T) {
	newPlugin, err := register.GetPlugin("bsonids")
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlugin(map[string]any{"registered": []any{"example.com/a.B", "example.com/a.C"}})
	if err != nil {
		t.Fatal(err)
	}
	defer bsonids.Analyzer.Flags.Set("registered", "")
	analyzers, err := p.BuildAnalyzers()
	if err != nil || len(analyzers) != 1 || p.GetLoadMode() != register.LoadModeTypesInfo {
		t.Fatalf("got %v, %v, %v", analyzers, err, p.GetLoadMode())
	}
	if got := analyzers[0].Flags.Lookup("registered").Value.String(); got != "example.com/a.B,example.com/a.C" {
		t.Errorf("the flag is %q", got)
	}
	if _, err := newPlugin(map[string]any{"registred": []any{}}); err == nil {
		t.Error("a setting that does not exist was accepted")
	}
	if _, err := newPlugin(nil); err != nil {
		t.Errorf("without settings: %v", err)
	}
}
