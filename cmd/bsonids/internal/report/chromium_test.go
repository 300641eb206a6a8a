package report

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
)

// browser is a headless Chromium with one page. It speaks the Chrome DevTools Protocol over two
// pipes, with a NUL after each message.
type browser struct {
	*testing.T
	w       *os.File
	r       *bufio.Reader
	id      int
	session string
	events  []message // that were received
}

type message struct {
	ID        int                       `json:"id,omitempty"`
	SessionID string                    `json:"sessionId,omitempty"`
	Method    string                    `json:"method,omitempty"`
	Params    any                       `json:"params,omitempty"`
	Result    json.RawMessage           `json:"result,omitempty"`
	Error     *struct{ Message string } `json:"error,omitempty"`
}

// must ends the test if there is an error.
func (b *browser) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func startBrowser(t *testing.T) *browser {
	t.Helper()
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("not with -short, because a browser takes long to start, and not on Windows")
	}
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
		}
	}
	if path == "" {
		t.Skip("there is no Chromium")
	}
	b := &browser{T: t}
	in, w, err := os.Pipe()
	b.must(err)
	r, out, err := os.Pipe()
	b.must(err)
	// A container has no user namespaces for the sandbox, and the page is our own.
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
		"--no-first-run", "--disable-background-networking", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{in, out} // the descriptors 3 and 4
	if err := cmd.Start(); err != nil {
		t.Skipf("Chromium does not start: %v", err)
	}
	_, _ = in.Close(), out.Close()
	t.Cleanup(func() {
		_ = w.Close() // it ends by itself; its children would still write to its directory if it were killed
		late := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		late.Stop()
		_ = r.Close()
	})
	b.must(r.SetReadDeadline(time.Now().Add(2 * time.Minute)))
	b.w, b.r = w, bufio.NewReader(r)
	var target struct{ TargetID, SessionID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Network", "Log", "Runtime"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// wait receives messages until one is that for which until returns true, and keeps the others.
func (b *browser) wait(until func(message) bool) message {
	b.Helper()
	for {
		text, err := b.r.ReadBytes(0)
		b.must(err)
		var m message
		b.must(json.Unmarshal(text[:len(text)-1], &m))
		if until(m) {
			return m
		}
		b.events = append(b.events, m)
	}
}

// call calls a method and decodes its result.
func (b *browser) call(method string, params, result any) {
	b.Helper()
	b.id++
	text, err := json.Marshal(message{ID: b.id, SessionID: b.session, Method: method, Params: params})
	b.must(err)
	_, err = b.w.Write(append(text, 0))
	b.must(err)
	m := b.wait(func(m message) bool { return m.ID == b.id })
	if m.Error != nil {
		b.Fatalf("%s: %s", method, m.Error.Message)
	}
	if result != nil {
		b.must(json.Unmarshal(m.Result, result))
	}
}

// open loads a page and waits until it is loaded.
func (b *browser) open(url string) {
	b.Helper()
	before := len(b.events)
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	loaded := func(m message) bool { return m.Method == "Page.loadEventFired" }
	for _, m := range b.events[before:] {
		if loaded(m) {
			return
		}
	}
	b.wait(loaded)
}

// eval returns the value of an expression, or of its promise, as JSON.
func (b *browser) eval(expression string) string {
	b.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Text string }
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if r.ExceptionDetails != nil {
		b.Errorf("%s: %s", expression, r.ExceptionDetails.Text)
	}
	return string(r.Result.Value)
}

func (b *browser) want(expression, want string) {
	b.Helper()
	if got := b.eval(expression); got != want {
		b.Errorf("%s is %s, want %s", expression, got, want)
	}
}

const visible = `[...document.querySelectorAll(".field")].filter(f => f.offsetParent).map(f => f.querySelector("h3").textContent).join(" ")`

// The filters, the commands to copy, a narrow screen and the print work in a browser, and the page
// asks the network for nothing.
func TestChromium(t *testing.T) {
	b := startBrowser(t)
	r := sample()
	java := scan.Field{Path: "java", Counts: scan.Counts{Legacy: 7}, Evidence: r.Collections[0].Fields[0].Evidence[:1]}
	r.Collections = append(r.Collections, scan.Collection{Namespace: "other.c", Mode: source.All, Scanned: 3, Fields: []scan.Field{java,
		{Path: "new", Counts: scan.Counts{Standard: 3}}, {Path: strings.Repeat("veryLongName.", 30) + "x", Counts: scan.Counts{Text: 1}}}})
	file := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := HTML(f, r); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	b.open("file://" + file)
	b.want(`document.querySelector("#filters").hidden`, "false")
	b.want(`document.querySelectorAll(".field").length`, "5")
	b.want(`document.querySelector("main section").id`, `"summary"`)
	b.want(`document.querySelector("script:not(:last-of-type), img, [onerror]")`, "null") // names are text

	b.eval(`document.querySelector("#group").value = "javaLegacy"; document.querySelector("#filters").dispatchEvent(new Event("input"))`)
	b.want(visible, `"items[].id java"`)
	b.want(`document.querySelector("#shown").textContent`, `"2 fields"`)
	b.eval(`document.querySelector("#name").value = "OTHER.c "; document.querySelector("#filters").dispatchEvent(new Event("input"))`)
	b.want(visible, `"java"`)
	b.want(`location.hash`, `"#group=javaLegacy&name=OTHER.c"`)

	b.eval(`navigator.clipboard.writeText = async text => { window.copied = text }`)
	b.eval(`(async () => { [...document.querySelectorAll(".command button")].find(b => b.offsetParent).click() })()`)
	b.want(`window.copied`, `"bsonids plan migration.d --db other --collection c"`)
	b.eval(`navigator.clipboard.writeText = async () => { throw new Error("denied") }`)
	b.eval(`(async () => { [...document.querySelectorAll(".command button")].find(b => b.offsetParent).click() })()`)
	b.want(`getSelection().toString().trim()`, `"bsonids plan migration.d --db other --collection c"`)

	// The address keeps the filters.
	b.open("about:blank")
	b.open("file://" + file + "#group=standard")
	b.want(visible, `"new"`)
	b.eval(`location.hash = "#group=none"; new Promise(r => addEventListener("hashchange", () => setTimeout(r)))`)
	b.want(`document.querySelector("#shown").textContent`, `"5 fields"`)

	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 320, "height": 600, "deviceScaleFactor": 1, "mobile": true}, nil)
	b.want(`document.documentElement.scrollWidth <= 320`, "true")
	b.call("Emulation.clearDeviceMetricsOverride", nil, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"media": "print"}, nil)
	b.want(`[getComputedStyle(document.querySelector("#filters")).display, getComputedStyle(document.querySelector("button")).display, getComputedStyle(document.body).backgroundColor].join()`,
		`"none,none,rgb(255, 255, 255)"`)
	var pdf struct{ Data string }
	b.call("Page.printToPDF", map[string]any{"printBackground": true}, &pdf)
	if data, err := base64.StdEncoding.DecodeString(pdf.Data); err != nil || !strings.HasPrefix(string(data), "%PDF-") {
		t.Errorf("not a PDF: %.20q %v", pdf.Data, err)
	}

	for _, m := range b.events {
		text := fmt.Sprint(m.Params)
		switch {
		case m.Method == "Network.requestWillBeSent" && !strings.Contains(text, "url:file://") && !strings.Contains(text, "url:about:blank"):
			t.Errorf("a request: %s", text)
		case m.Method == "Log.entryAdded", m.Method == "Runtime.exceptionThrown":
			t.Errorf("%s: %s", m.Method, text)
		}
	}
}
