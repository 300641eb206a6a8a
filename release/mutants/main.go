// Command mutants changes a package in one place at a time and runs those of the package's own tests that run the changed code,
// the quickest first: one must fail. It prints the changes that the tests do not notice, and those that no test runs.
//
// usage: mutants [-seed N] [-sample N] [-allow PERCENT] [-match REGEXP] [-list] DIR…
//
// It runs at the top of the repository. A directory is that of a package, such as ./uuidrep. Without -sample every change is
// tried. It exits with 1 if more than PERCENT of a package's changes survive. The file release/mutants/equal lists changes that no test can notice, with the
// reason.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const equalFile = "release/mutants/equal"

func main() {
	seed := flag.Uint64("seed", 1, "`N` chooses the sample")
	sample := flag.Int("sample", 0, "try `N` changes of each package; 0 is all")
	allow := flag.Float64("allow", 0, "let `PERCENT` of the changes of a package survive")
	match := flag.String("match", "", "try only the changes whose description matches `REGEXP`")
	list := flag.Bool("list", false, "list the changes and run nothing")
	flag.Parse()
	expr, err := regexp.Compile(*match)
	if err == nil && flag.NArg() == 0 {
		err = errors.New("no directory is named")
	}
	failed := false
	for _, dir := range flag.Args() {
		if err != nil {
			break
		}
		var percent float64
		percent, err = run(os.Stdout, dir, *seed, *sample, expr, *list)
		failed = failed || percent > *allow
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if failed {
		os.Exit(1)
	}
}

// run tries the changes of one package and returns how many of a hundred survived.
func run(w io.Writer, dir string, seed uint64, sample int, match *regexp.Regexp, list bool) (float64, error) {
	pkg, mutants, err := find(dir)
	if err != nil {
		return 0, err
	}
	equal, err := readEqual()
	if err != nil {
		return 0, err
	}
	found := make(map[string]bool, len(mutants))
	for _, m := range mutants {
		found[m.key()] = true
	}
	for key := range equal {
		if file, _, _ := strings.Cut(key, "\t"); path.Dir(file) == path.Clean(filepath.ToSlash(dir)) && !found[key] {
			return 0, fmt.Errorf("%s: no such change: %q", equalFile, key)
		}
	}
	var tried []mutant
	for _, m := range mutants {
		if match.MatchString(m.String()) && !equal[m.key()] {
			tried = append(tried, m)
		}
	}
	if sample > 0 && sample < len(tried) {
		r := rand.New(rand.NewPCG(seed, 0))
		r.Shuffle(len(tried), func(i, j int) { tried[i], tried[j] = tried[j], tried[i] })
		tried = tried[:sample]
	}
	if list {
		for _, m := range tried {
			fmt.Fprintln(w, m)
		}
		return 0, nil
	}
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	r := runner{dir: dir, work: work}
	if err := r.start(pkg, tried); err != nil {
		return 0, err
	}
	count := make(map[verdict]int)
	for i, m := range tried {
		verdict, err := r.test(i, m)
		if err != nil {
			return 0, err
		}
		count[verdict]++
		if verdict == survived {
			fmt.Fprintln(w, "survived:", m)
		}
	}
	n := count[killed] + count[survived]
	percent := 100 * float64(count[survived]) / float64(max(n, 1))
	fmt.Fprintf(w, "%s: %d of %d changes survived (%.1f %%), %d did not compile\n", dir, count[survived], n, percent, count[invalid])
	return percent, nil
}

type verdict int

const (
	survived verdict = iota
	killed
	invalid // the change does not compile
)

// runner tries the changes of one package.
type runner struct {
	dir, work string
	tests     *tests
	variants  variants
	number    map[int]int          // by the index of a change, its number in variants
	invalid   map[int]bool         // by that number, less one
	noticed   map[*function]string // the test that noticed the last change of a function
}

// start runs the tests without a change, learns what each of them runs, and compiles the changes.
func (r *runner) start(pkg string, tried []mutant) error {
	var err error
	if r.tests, err = findTests(r.work, r.dir); err != nil {
		return err
	}
	if verdict, err := r.alone(nil, r.tests.each); err != nil || verdict != survived {
		return errors.Join(err, fmt.Errorf("%s: the tests fail without a change", r.dir))
	}
	r.number, r.noticed = make(map[int]int), make(map[*function]string)
	var together []mutant
	for i, m := range tried {
		if m.function != nil {
			together = append(together, m)
			r.number[i] = len(together)
		}
	}
	r.variants = variants{dir: r.dir, pkg: pkg, binary: filepath.Join(r.work, "variants")}
	if r.invalid, err = r.variants.build(r.work, together); err != nil {
		return err
	}
	// Tests that count allocations fail, because the functions are longer.
	r.variants.fails = make(map[string]bool)
	for _, t := range r.tests.each {
		if v, _ := runEach(r.dir, r.variants.binary, []test{t}, 0); v == killed {
			r.variants.fails[t.name] = true
		}
	}
	return nil
}

// test tries the change of that index with the tests that run the changed code. If such a test fails in the binary of all changes
// even without one, then a change that the others do not notice is compiled alone.
func (r *runner) test(i int, m mutant) (verdict, error) {
	each := r.tests.of(m)
	if n, ok := r.number[i]; ok {
		if r.invalid[n-1] {
			return invalid, nil
		}
		var together, alone []test
		for _, t := range each {
			if r.variants.fails[t.name] {
				alone = append(alone, t)
			} else {
				together = append(together, t)
			}
		}
		// What noticed another change of the function often notices this one.
		if i := slices.IndexFunc(together, func(t test) bool { return t.name == r.noticed[m.function] }); i > 0 {
			together = slices.Insert(slices.Delete(slices.Clone(together), i, i+1), 0, together[i])
		}
		v, by := runEach(r.dir, r.variants.binary, together, n)
		if by != "" {
			r.noticed[m.function] = by
		}
		if v == killed || len(alone) == 0 {
			return v, nil
		}
		each = alone
	}
	overlay, err := m.overlay(r.work)
	if err != nil {
		return 0, err
	}
	return r.alone(overlay, each)
}

// alone compiles the package with the files of overlay in place of others, and runs these tests.
func (r *runner) alone(overlay map[string]string, each []test) (verdict, error) {
	binary := filepath.Join(r.work, "alone")
	if _, err := compile(r.work, overlay, r.dir, binary); err != nil {
		return invalid, nil
	}
	v, _ := runEach(r.dir, binary, each, 0)
	return v, nil
}

// compile writes a test binary of the package in dir.
func compile(work string, overlay map[string]string, dir, binary string, flags ...string) ([]byte, error) {
	b, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return nil, err
	}
	name := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(name, b, 0o644); err != nil {
		return nil, err
	}
	args := append([]string{"test", "-c", "-vet=off", "-gcflags=-e", "-overlay", name, "-o", binary}, flags...)
	return exec.Command("go", append(args, dir)...).CombinedOutput()
}

// readEqual returns the keys of the changes that no test can notice.
func readEqual() (map[string]bool, error) {
	f, err := os.Open(equalFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	equal := make(map[string]bool)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) == 5 {
			equal[strings.Join(fields[:4], "\t")] = true
		} else if line := lines.Text(); line != "" && !strings.HasPrefix(line, "#") {
			return nil, fmt.Errorf("%s: %q: want five fields separated by tabs", equalFile, line)
		}
	}
	return equal, lines.Err()
}
