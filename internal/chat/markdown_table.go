package chat

import (
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/mdtable"
)

// table renders a table. If it does not fit the width, each row becomes a list of its
// cells, below each other.
func (p *page) table(t *mdtable.Table, width int) []line {
	var grid [][][]span
	columns := 0
	for i, row := range t.Rows {
		drawn := make([][]span, len(row))
		for j, cell := range row {
			drawn[j] = p.text(cell, style{bold: i == 0})
		}
		grid = append(grid, drawn)
		columns = max(columns, len(row)) // a row can have more cells than the header
	}
	widths, ok := columnWidths(grid, columns, width)
	if !ok {
		return records(grid, width)
	}
	var lines []line
	for i, row := range grid {
		lines = append(lines, rowLines(row, widths, t.Aligns)...)
		if i == 0 {
			rule := make([]string, columns)
			for j := range rule {
				rule[j] = strings.Repeat("─", widths[j])
			}
			lines = append(lines, line{{text: strings.Join(rule, "─┼─")}})
		}
	}
	return lines
}

// columnWidths returns the widths of the columns. It makes wide columns narrower until
// the table fits. It returns false if a word would then not fit its column.
func columnWidths(grid [][][]span, columns, width int) ([]int, bool) {
	full, word := make([]int, columns), make([]int, columns)
	for _, row := range grid {
		for j, cell := range row {
			full[j] = max(full[j], line(cell).width(), 1)
			word[j] = max(word[j], widestWord(cell))
		}
	}
	space := width - 3*(columns-1)
	limited := func(limit int) ([]int, int) {
		widths, sum := make([]int, columns), 0
		for j := range widths {
			widths[j] = min(full[j], max(word[j], limit))
			sum += widths[j]
		}
		return widths, sum
	}
	if _, sum := limited(1); sum > space {
		return nil, false
	}
	limit := 1
	for limit < width {
		if _, sum := limited(limit + 1); sum > space {
			break
		}
		limit++
	}
	widths, _ := limited(limit)
	return widths, true
}

// widestWord returns the width of the widest part of a text that wrap would not break.
func widestWord(spans []span) int {
	widest, word := 0, 0
	clusters(spans, func(text string, width int, _ style) {
		switch {
		case text == " ", text == "\n":
			word = 0
		case width > 1:
			widest, word = max(widest, width), 0
		default:
			word += width
		}
		widest = max(widest, word)
	})
	return widest
}

// rowLines renders a row of a table.
func rowLines(row [][]span, widths []int, aligns []mdtable.Align) []line {
	wrapped, height := make([][]line, len(widths)), 1
	for j := range widths {
		if j < len(row) {
			wrapped[j] = wrap(row[j], widths[j])
			height = max(height, len(wrapped[j]))
		}
	}
	lines := make([]line, height)
	for i := range lines {
		for j, width := range widths {
			if j > 0 {
				lines[i] = lines[i].with(" │ ", style{})
			}
			var cell line
			if i < len(wrapped[j]) {
				cell = wrapped[j][i]
			}
			side := mdtable.Left
			if j < len(aligns) {
				side = aligns[j]
			}
			lines[i] = append(lines[i], padded(cell, width, side)...)
		}
	}
	return lines
}

// padded adds spaces to a cell, up to the width of its column.
func padded(cell line, width int, side mdtable.Align) line {
	left, right := 0, max(width-cell.width(), 0)
	switch side {
	case mdtable.Centre:
		left = right / 2
		right -= left
	case mdtable.Right:
		left, right = right, 0
	case mdtable.Left:
	}
	return slices.Concat(line{{text: strings.Repeat(" ", left)}}, cell, line{{text: strings.Repeat(" ", right)}})
}

// records renders a table that is too wide: each cell in lines of its own, after the header
// of its column.
func records(grid [][][]span, width int) []line {
	header, rows := grid[0], grid[1:]
	if len(rows) == 0 {
		rows = [][][]span{nil}
	}
	var lines []line
	for i, row := range rows {
		if i > 0 {
			lines = append(lines, nil)
		}
		for j := range max(len(header), len(row)) {
			var spans []span
			if j < len(header) && len(header[j]) > 0 {
				spans = slices.Concat(header[j], line{{text: ": "}})
			}
			if j < len(row) {
				spans = append(spans, row[j]...)
			}
			lines = append(lines, wrap(spans, width)...)
		}
	}
	return lines
}
