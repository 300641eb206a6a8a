package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// The argument of each verb that works on a migration is completed with directories, once.
func TestCompleteDirectories(t *testing.T) {
	for _, verb := range []string{"plan", "apply", "verify", "status", "cutover", "release", "undo"} {
		for _, c := range []struct {
			args []string
			want cobra.ShellCompDirective
		}{{[]string{""}, cobra.ShellCompDirectiveFilterDirs}, {[]string{"shop.d", ""}, cobra.ShellCompDirectiveNoFileComp}} {
			var out, errs bytes.Buffer
			code := Run(t.Context(), append([]string{"__complete", verb}, c.args...), &out, &errs)
			if want := fmt.Sprintf(":%d", c.want); code != 0 || !strings.HasSuffix(strings.TrimSpace(out.String()), want) {
				t.Errorf("%s %q: got %q, want %q", verb, c.args, out.String(), want)
			}
		}
	}
}
