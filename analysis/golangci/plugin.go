// Package golangci is the analyzer as a module plugin of golangci-lint. In .custom-gcl.yml:
//
//	plugins:
//	  - module: github.com/bsonids/bsonids/analysis
//	    import: github.com/bsonids/bsonids/analysis/golangci
//	    version: v1.0.0
//
// and in .golangci.yml, where registered lists the types that are registered elsewhere:
//
//	linters:
//	  enable: [bsonids]
//	  settings:
//	    custom:
//	      bsonids:
//	        type: module
//	        settings:
//	          registered: [example.com/shop/model.OrderID]
package golangci

import (
	"strings"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	bsonids "github.com/bsonids/bsonids/analysis"
)

func init() { register.Plugin("bsonids", New) }

// Settings are the settings of the plugin.
type Settings struct {
	// Registered lists types that are registered elsewhere: import/path.Type.
	Registered []string `json:"registered"`
}

type plugin struct{ settings Settings }

// New returns the plugin for settings, an object with the fields of [Settings] or nil. Other
// fields are an error.
func New(settings any) (register.LinterPlugin, error) {
	s, err := register.DecodeSettings[Settings](settings)
	if err != nil {
		return nil, err
	}
	return &plugin{s}, nil
}

// BuildAnalyzers returns the analyzer.
func (p *plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	a := bsonids.Analyzer
	if err := a.Flags.Set("registered", strings.Join(p.settings.Registered, ",")); err != nil {
		return nil, err
	}
	return []*analysis.Analyzer{a}, nil
}

// GetLoadMode says that the analyzer needs types.
func (p *plugin) GetLoadMode() string { return register.LoadModeTypesInfo }
