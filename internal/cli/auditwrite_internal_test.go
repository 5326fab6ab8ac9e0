package cli

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/belay-run/belay/internal/auditreport"
)

// A line is JSON, whatever the name of a column is.
//
// SPEC O-03
func TestLinesOfAReportAreJSON(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"label:team", "label:\a\"\x00", "label:\U000e0001"} {
		var out bytes.Buffer
		a := &app{out: &out}
		report := &auditreport.Report{Columns: []auditreport.Column{{Name: name, Kind: auditreport.Text}, {Name: "turns", Kind: auditreport.Count}}, Rows: [][]any{{"red", 2}}}
		if err := a.writeReport(report, &auditOptions{format: "jsonl"}); err != nil {
			t.Fatal(err)
		}
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil || line[name] != "red" || line["turns"] != 2.0 {
			t.Errorf("%q becomes %s (%v)", name, &out, err)
		}
	}
}
