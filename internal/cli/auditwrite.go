package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay/internal/auditreport"
)

// writeReport prints a report in the format that the flags ask for.
func (a *app) writeReport(r *auditreport.Report, o *auditOptions) error {
	if o.limit > 0 && len(r.Rows) > o.limit {
		r.Rows, r.Omitted = r.Rows[:o.limit], 0
	}
	if r.Omitted > 0 {
		a.remarkf("%d more rows were left out: limit the question with --since, --session or --label", r.Omitted)
	}
	switch o.format {
	case "jsonl":
		return a.writeLines(r)
	case "csv":
		out := csv.NewWriter(a.out)
		titles := make([]string, len(r.Columns))
		for i := range r.Columns {
			titles[i] = r.Columns[i].Name
		}
		_ = out.Write(titles) // Error reports it
		for _, row := range r.Rows {
			cells := make([]string, len(row))
			for i, cell := range row {
				cells[i] = sheetCell(cell)
			}
			_ = out.Write(cells)
		}
		out.Flush()
		if err := out.Error(); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		return nil
	}
	if len(r.Rows) == 0 {
		a.remarkf("%s", r.Empty)
		return nil
	}
	var t table
	titles := make([]string, len(r.Columns))
	for i := range r.Columns {
		titles[i] = strings.ToUpper(strings.ReplaceAll(r.Columns[i].Name, "_", " "))
	}
	t.add(titles...)
	now := time.Now()
	for _, row := range r.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = a.shownCell(cell, now)
		}
		t.add(cells...)
	}
	return t.write(a.out, a.onOut.dim)
}

// writeLines prints one JSON object per row. Its keys have the order of the columns.
func (a *app) writeLines(r *auditreport.Report) error {
	for _, row := range r.Rows {
		var line bytes.Buffer
		line.WriteByte('{')
		for i, cell := range row {
			switch v := cell.(type) {
			case time.Duration:
				cell = v.Seconds()
			case time.Time:
				cell = auditreport.Plain(v)
			}
			name, errName := json.Marshal(r.Columns[i].Name) // with --by, it has the name of a label
			value, err := json.Marshal(cell)
			if err := errors.Join(errName, err); err != nil {
				return fmt.Errorf("print: %w", err)
			}
			if i > 0 {
				line.WriteByte(',')
			}
			fmt.Fprintf(&line, "%s:%s", name, value)
		}
		line.WriteString("}\n")
		if _, err := a.out.Write(line.Bytes()); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

// sheetCell returns a cell for CSV. A text that a spreadsheet would take for a formula begins
// with an apostrophe: reasons and commands come from models and strangers.
func sheetCell(cell any) string {
	if text, ok := cell.(string); ok && text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return auditreport.Plain(cell)
}

// cellWidth is how much of a text the table shows.
const cellWidth = 80

func (a *app) shownCell(cell any, now time.Time) string {
	switch v := cell.(type) {
	case string:
		return short(oneLine(v), cellWidth)
	case float64:
		return fmt.Sprintf("$%.4f", v)
	case time.Duration:
		return shownDuration(v)
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return ago(now, v)
	default:
		return fmt.Sprint(v)
	}
}

// shownDuration rounds a duration to three digits or so.
func shownDuration(d time.Duration) string {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	default:
		return d.String()
	}
}
