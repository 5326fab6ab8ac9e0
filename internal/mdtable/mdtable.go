// Package mdtable finds tables in paragraphs of Markdown. The chat and the console show them.
// The tables of goldmark are in a package that compiles large patterns when a program starts.
package mdtable

import "strings"

// Align is the side of a column that its text is on.
type Align int

// The sides.
const (
	Left Align = iota
	Centre
	Right
)

// Table is a table in Markdown.
type Table struct {
	Above  int // how many lines of the paragraph are above the table
	Aligns []Align
	Rows   [][]string // the first one is the header
}

// In looks for a table in the lines of a paragraph. The table begins one line above
// the line of dashes, and goes to the end of the paragraph.
func In(lines []string) (Table, bool) {
	for i := 1; i < len(lines); i++ {
		aligns, ok := dashes(lines[i])
		if !ok || len(cells(lines[i-1])) != len(aligns) {
			continue
		}
		t := Table{Above: i - 1, Aligns: aligns, Rows: [][]string{cells(lines[i-1])}}
		for _, row := range lines[i+1:] {
			t.Rows = append(t.Rows, cells(row))
		}
		return t, true
	}
	return Table{}, false
}

// dashes reads the line below a header, such as |---|:-:|.
func dashes(line string) ([]Align, bool) {
	if !strings.Contains(line, "|") {
		return nil, false
	}
	var aligns []Align
	for _, cell := range cells(line) {
		left, right := strings.HasPrefix(cell, ":"), strings.HasSuffix(cell, ":")
		cell = strings.TrimSuffix(strings.TrimPrefix(cell, ":"), ":")
		if cell == "" || strings.Trim(cell, "-") != "" {
			return nil, false
		}
		a := Left
		switch {
		case left && right:
			a = Centre
		case right:
			a = Right
		}
		aligns = append(aligns, a)
	}
	return aligns, true
}

// cells splits a row at its bars. A bar with a backslash is text.
func cells(row string) []string {
	row = strings.TrimPrefix(strings.TrimSpace(row), "|")
	var all []string
	var cell strings.Builder
	for i := 0; i < len(row); i++ {
		switch {
		case row[i] == '\\' && i+1 < len(row) && row[i+1] == '|':
			cell.WriteByte('|')
			i++
		case row[i] == '\\' && i+1 < len(row):
			cell.WriteString(row[i : i+2])
			i++
		case row[i] == '|':
			all = append(all, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			cell.WriteByte(row[i])
		}
	}
	if last := strings.TrimSpace(cell.String()); last != "" || len(all) == 0 {
		all = append(all, last)
	}
	return all
}
