package plan

import (
	"strings"
	"testing"
)

// A plan writes that there is no guard, and reads the level in any letter case.
func TestGuardInFile(t *testing.T) {
	p := &Plan{Database: "shop", To: "standard", Collections: []Collection{{Name: "c", Fields: []Field{java("a")}}}}
	b := string(write(t, p))
	if !strings.Contains(b, "\n    guard: none\n") {
		t.Fatal(b)
	}
	for word, want := range map[string]string{"none": "", "None": "", "moderate": "moderate", "STRICT": "strict"} {
		q, err := Parse([]byte(strings.Replace(b, "guard: none", "guard: "+word, 1)))
		if err != nil || q.Collections[0].Guard != want {
			t.Errorf("%s: %+v, %v", word, q, err)
		}
		d := strings.Join(Changes(p, q), "; ")
		if (d == "") != (want == "") || want != "" && !strings.Contains(d, "\"c\": guard was none and is "+want) {
			t.Errorf("%s: %s", word, d)
		}
	}
	q, err := Parse([]byte(strings.Replace(b, "    guard: none\n", "", 1)))
	if err != nil || len(Changes(p, q)) > 0 {
		t.Error(q, err)
	}
}
