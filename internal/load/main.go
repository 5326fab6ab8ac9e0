// Command load measures how much one machine holds: turns, sessions and streams on SQLite, and turns on PostgreSQL with several
// worker processes. It prints the tables of docs/scale.md. Its models answer without a network. Each measurement ends after a
// number of turns or after a time.
//
//	go run ./internal/load [-short] [sqlite] [sessions] [streams] [postgres]
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	short := flag.Bool("short", false, "measure a tenth, to see that it works")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *short, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// size says how much is measured.
type size struct {
	lasts    time.Duration // of each point with a time
	sessions int
	atOnce   []int // sessions that have a turn at once
	streams  []int
	workers  []int
	turns    int           // of all workers together, with a model that answers at once
	answers  time.Duration // how long the slow model takes for an answer
	together int           // turns of the slow model that a worker runs at once
}

var (
	whole = size{lasts: 5 * time.Second, sessions: 10_000, atOnce: []int{1, 8, 64, 256}, streams: []int{100, 500, 1000, 2000}, workers: []int{1, 2, 4, 8}, turns: 1500, answers: time.Second, together: 64}
	brief = size{lasts: 200 * time.Millisecond, sessions: 100, atOnce: []int{1, 8}, streams: []int{20}, workers: []int{1, 2}, turns: 20, answers: 50 * time.Millisecond, together: 8}
)

// part is something that is measured on its own.
type part struct {
	name    string
	measure func(ctx context.Context, out io.Writer, s *size) error
}

// run measures the parts that are named, or all of them.
func run(ctx context.Context, out io.Writer, short bool, parts []string) error {
	if isWorker, err := serveWorker(ctx); isWorker {
		return err
	}
	s := whole
	if short {
		s = brief
	}
	all := []part{{"sqlite", turnsOnSQLite}, {"sessions", manySessions}, {"streams", manyStreams}, {"postgres", turnsOnPostgres}}
	for _, name := range parts {
		if !slices.ContainsFunc(all, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("there is no part %q: the parts are sqlite, sessions, streams and postgres", name)
		}
	}
	fmt.Fprintf(out, "%s/%s, %d cores, %s, load average %s\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), loadAverage())
	for _, p := range all {
		if len(parts) > 0 && !slices.Contains(parts, p.name) {
			continue
		}
		if err := p.measure(ctx, out, &s); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	fmt.Fprintf(out, "\nload average at the end %s\n", loadAverage())
	return nil
}

// loadAverage returns the load of the last minute, where the system says it.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := bytes.Cut(text, []byte(" "))
	return string(first)
}

// heading begins a table of Markdown.
func heading(out io.Writer, columns ...string) {
	fmt.Fprintf(out, "\n| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
}

// row adds a row to a table.
func row(out io.Writer, cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		switch c := c.(type) {
		case float64:
			texts[i] = fmt.Sprintf("%.3g", c)
			if c >= 1000 {
				texts[i] = fmt.Sprintf("%.0f", c)
			}
		case time.Duration:
			texts[i] = fmt.Sprintf("%.3g ms", float64(c)/float64(time.Millisecond))
		default:
			texts[i] = fmt.Sprint(c)
		}
	}
	fmt.Fprintf(out, "| %s |\n", strings.Join(texts, " | "))
}

// quantile returns the value below which a share of the durations is. It sorts them.
func quantile(all []time.Duration, share float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, int(share*float64(len(all))))]
}

// inDirectory calls f with a temporary directory.
func inDirectory(f func(dir string) error) (err error) {
	dir, err := os.MkdirTemp("", "belay-load")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return f(dir)
}
