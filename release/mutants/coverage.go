package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// test is a test, a fuzz target or an example of a package.
type test struct {
	name   string
	took   time.Duration // of processor time, alone
	blocks []block       // the statements that it runs
}

// block is a part of a file, from a position to that before another one.
type block struct {
	file                           string // without its directory
	line, column, last, lastColumn int
}

var profileLine = regexp.MustCompile(`(?m)^\S*?([^/\s]+\.go):(\d+)\.(\d+),(\d+)\.(\d+) \d+ (\d+)$`)

// blocksOf reads a profile. It returns the blocks of the package, and those that ran.
func blocksOf(profile []byte) (all, ran []block) {
	for _, m := range profileLine.FindAllSubmatch(profile, -1) {
		b := block{file: string(m[1])}
		count := 0
		for i, to := range []*int{&b.line, &b.column, &b.last, &b.lastColumn, &count} {
			fmt.Sscan(string(m[i+2]), to)
		}
		all = append(all, b)
		if count > 0 {
			ran = append(ran, b)
		}
	}
	return all, ran
}

func (b block) contains(m mutant) bool {
	return b.file == filepath.Base(m.file) && (m.line > b.line || m.line == b.line && m.column >= b.column) &&
		(m.line < b.last || m.line == b.last && m.column < b.lastColumn)
}

// within reports whether the block is in the function of the change.
func (b block) within(m mutant) bool {
	return b.file == filepath.Base(m.file) && m.function.firstLine <= b.line && b.last <= m.function.lastLine
}

// tests are those of a package, the quickest first.
type tests struct {
	each   []test
	blocks []block // of the package
}

// findTests runs each test of the package alone, and learns what it runs.
func findTests(work, dir string) (*tests, error) {
	binary := filepath.Join(work, "covered")
	if out, err := compile(work, nil, dir, binary, "-cover"); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	list := exec.Command(binary, "-test.list", ".")
	list.Dir = dir
	names, err := list.Output()
	if err != nil {
		return nil, err
	}
	ts := &tests{}
	for _, name := range strings.Fields(string(names)) {
		profile := filepath.Join(work, "profile")
		if err := os.Remove(profile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		cmd := exec.Command(binary, "-test.short", "-test.run", only(name), "-test.coverprofile", profile)
		cmd.Dir = dir
		cmd.Run() // a test that counts allocations fails
		content, err := os.ReadFile(profile)
		if err != nil {
			return nil, err
		}
		t := test{name: name, took: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
		ts.blocks, t.blocks = blocksOf(content)
		ts.each = append(ts.each, t)
	}
	slices.SortStableFunc(ts.each, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	return ts, nil
}

// of returns the tests that run the changed code.
func (ts *tests) of(m mutant) []test {
	if m.function == nil {
		return ts.each
	}
	inBlock := slices.ContainsFunc(ts.blocks, func(b block) bool { return b.contains(m) })
	var found []test
	for _, t := range ts.each {
		if slices.ContainsFunc(t.blocks, func(b block) bool { return inBlock && b.contains(m) || !inBlock && b.within(m) }) {
			found = append(found, t)
		}
	}
	return found
}

func only(names ...string) string { return "^(" + strings.Join(names, "|") + ")$" }

var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// runEach runs tests with the change of that number until one fails: the first one alone, and then more and more of them at once. It
// returns the name of the test that failed, if that is known.
func runEach(dir, binary string, each []test, number int) (verdict, string) {
	var spent time.Duration
	for i := 0; i < len(each); {
		n := i + 1
		took := each[i].took
		for n < len(each) && i > 0 && took+each[n].took < spent+50*time.Millisecond {
			took += each[n].took
			n++
		}
		var names []string
		for _, t := range each[i:n] {
			names = append(names, t.name)
		}
		if v, out := runTests(dir, binary, []string{"-test.run", only(names...)}, number, took); v == killed {
			if m := failedTest.FindSubmatch(out); m != nil {
				return killed, string(m[1])
			}
			return killed, ""
		}
		spent += took
		i = n
	}
	return survived, ""
}

// runTests runs a test binary with the change of that number. Tests that need more than 8 GiB, or many times the processor time
// that they took, have noticed the change.
func runTests(dir, binary string, args []string, number int, took time.Duration) (verdict, []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*took+15*time.Second)
	defer cancel()
	limits := fmt.Sprintf(`ulimit -v 8388608; ulimit -t %d; exec "$0" "$@"`, int((5*took).Seconds())+5)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", limits, binary, "-test.short", "-test.failfast"}, args...)...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("MUTANT=%d", number))
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return killed, out
	}
	return survived, out
}
