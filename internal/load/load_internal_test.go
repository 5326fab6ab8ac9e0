package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if isWorker, err := serveWorker(context.Background()); isWorker {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// The short form measures every part: each turn runs once and ends as it should, no stream ends early, and each figure of time
// is above zero.
func TestShort(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), &out, true, nil); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	rows := make(map[string]int) // by the first column
	var table string
	for line := range strings.Lines(out.String()) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) < 4 {
			continue
		}
		if _, err := strconv.Atoi(cells[0]); err != nil {
			table = cells[0]
			continue
		}
		rows[table]++
		for i, cell := range cells {
			figure, unit, _ := strings.Cut(cell, " ")
			// A file of SQLite grows by large steps.
			if value, err := strconv.ParseFloat(figure, 64); err != nil || value < 0 || value == 0 && unit != "KB" {
				t.Errorf("%s: cell %d is %q, %v", table, i+1, cell, err)
			}
		}
	}
	for name, want := range map[string]int{"sessions at once": len(brief.atOnce), "sessions": 1, "streams": len(brief.streams), "workers": 2 * len(brief.workers)} {
		if rows[name] != want {
			t.Errorf("the table of %s has %d rows, want %d:\n%s", name, rows[name], want, out.String())
		}
	}
}

// A misspelled part is an error, and measures nothing.
func TestUnknownPart(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), &out, true, []string{"sqlite", "mysql"}); err == nil || !strings.Contains(err.Error(), `"mysql"`) || out.Len() > 0 {
		t.Errorf("the error is %v after %s", err, out.String())
	}
}
