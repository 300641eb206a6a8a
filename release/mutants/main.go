// Command mutants changes a package in one place at a time and runs the package's own tests, which must fail. It prints the
// changes that the tests do not notice.
//
// usage: mutants [-seed N] [-sample N] [-allow PERCENT] [-match REGEXP] [-list] DIR…
//
// It runs at the top of the repository. A directory is that of a package, such as ./uuidrep. Without -sample every change is
// tried. It exits with 1 if more than PERCENT of a package's changes survive. The file release/mutants/equal lists changes that no test can notice, with the
// reason.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
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
	mutants, err := find(dir)
	if err != nil {
		return 0, err
	}
	equal, err := readEqual()
	if err != nil {
		return 0, err
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
	began := time.Now()
	if result := test(dir, nil, 10*time.Minute); result.verdict != survived {
		return 0, fmt.Errorf("%s: the tests fail without a change:\n%s", dir, result.output)
	}
	limit := 3*time.Since(began) + 20*time.Second
	count := make(map[verdict]int)
	for _, m := range tried {
		overlay, err := m.overlay()
		if err != nil {
			return 0, err
		}
		result := test(dir, overlay, limit)
		count[result.verdict]++
		if result.verdict == survived {
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

type result struct {
	verdict verdict
	output  []byte
}

// test runs the tests of the package in dir with the files of overlay in place of others. A test that needs more than 8 GiB or
// the limit of time has noticed the change.
func test(dir string, overlay map[string]string, limit time.Duration) result {
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return result{invalid, []byte(err.Error())}
	}
	defer os.RemoveAll(work)
	b, err := json.Marshal(map[string]any{"Replace": overlay})
	if err == nil {
		err = os.WriteFile(filepath.Join(work, "overlay.json"), b, 0o644)
	}
	for _, name := range overlay {
		defer os.Remove(name)
	}
	if err != nil {
		return result{invalid, []byte(err.Error())}
	}
	binary := filepath.Join(work, "test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(work, "overlay.json"), "-o", binary, dir)
	if out, err := build.CombinedOutput(); err != nil {
		return result{invalid, out}
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", `ulimit -v 8388608; exec "$0" -test.short -test.failfast`, binary)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return result{killed, out}
	}
	return result{survived, out}
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
		if len(fields) == 4 {
			equal[strings.Join(fields[:3], "\t")] = true
		} else if line := lines.Text(); line != "" && !strings.HasPrefix(line, "#") {
			return nil, fmt.Errorf("%s: %q: want four fields separated by tabs", equalFile, line)
		}
	}
	return equal, lines.Err()
}
