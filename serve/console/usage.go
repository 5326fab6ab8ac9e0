package console

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve/api"
)

// usageRanges are the numbers of days that the page offers.
var usageRanges = []int{7, 30, 90}

// usageFilter is what the address of the page of usage says.
type usageFilter struct {
	Days int
	By   string // the name of the label by which the page adds up, or ""
}

// path returns the address of the page with this filter.
func (f usageFilter) path() string {
	q := url.Values{}
	if f.Days != usageRanges[1] {
		q.Set("days", strconv.Itoa(f.Days))
	}
	if f.By != "" {
		q.Set("by", f.By)
	}
	if len(q) == 0 {
		return "/usage"
	}
	return "/usage?" + q.Encode()
}

// of returns the filter with another number of days.
func (f usageFilter) of(days int) usageFilter {
	f.Days = days
	return f
}

// usageView is what the page of usage shows.
type usageView struct {
	Filter usageFilter
	Total  api.Usage
	Days   []api.UsageRow // each day of the range, the oldest first
	Cost   chart
	Tokens chart
	Parts  []usagePart
	Labels []string // names of labels that sessions have
}

// usagePart is a table of parts: by agent, by model or by label.
type usagePart struct {
	ID, Title, Name string // Name is the head of the first column
	Empty           string // the name of the part without a key
	Rows            []usageRow
}

// usageRow is one part with its share.
type usageRow struct {
	api.UsageRow

	Share string // in percent of the largest
}

// usagePage shows cost and tokens by day, agent, model and label.
func usagePage(ctx context.Context, v *visit) (templ.Component, error) {
	b := usageView{Filter: usageFilter{Days: usageRanges[1], By: v.query("by")}}
	if days, err := strconv.Atoi(v.query("days")); err == nil && slices.Contains(usageRanges, days) {
		b.Filter.Days = days
	}
	today := time.Now().UTC().Truncate(24 * time.Hour)
	since := today.AddDate(0, 0, 1-b.Filter.Days)
	var err error
	if b.Total, err = v.ReadUsage(ctx, api.ReadUsage{Since: since, By: "day"}); err != nil {
		return nil, err
	}
	b.Days = everyDay(b.Total.Rows, since, b.Filter.Days)
	b.draw(since)
	parts := []usagePart{{ID: "agents", Title: "By agent", Name: "Agent", Empty: "no agent"}, {ID: "models", Title: "By model", Name: "Model", Empty: "unknown model"}}
	bys := []string{"agent", "model"}
	if b.Filter.By != "" {
		parts = append(parts, usagePart{ID: "label", Title: "By label " + b.Filter.By, Name: b.Filter.By, Empty: "without the label"})
		bys = append(bys, "label:"+b.Filter.By)
	}
	for i := range parts {
		part, err := v.ReadUsage(ctx, api.ReadUsage{Since: since, By: bys[i]})
		if err != nil {
			return nil, err
		}
		parts[i].Rows = shares(part.Rows)
	}
	b.Parts = parts
	if b.Labels, err = v.labelNames(ctx); err != nil {
		return nil, err
	}
	return usageReport(v, &b), nil
}

// labelNames returns the names of the labels of the last sessions.
func (v *visit) labelNames(ctx context.Context) ([]string, error) {
	list, err := v.ListSessions(ctx, api.ListSessions{Limit: 50})
	var names []string
	for i := range list.Sessions {
		for name := range list.Sessions[i].Labels {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, err
}

// everyDay returns a row for each day of a range. A day without responses has a row of zeros.
func everyDay(rows []api.UsageRow, since time.Time, n int) []api.UsageRow {
	byDay := make(map[string]api.UsageRow)
	for _, r := range rows {
		byDay[r.Key] = r
	}
	days := make([]api.UsageRow, n)
	for i := range days {
		key := since.AddDate(0, 0, i).Format(time.DateOnly)
		days[i] = byDay[key]
		days[i].Key = key
	}
	return days
}

// draw makes the charts.
func (b *usageView) draw(since time.Time) {
	var days []time.Time
	var cost, all []float64
	for i := range b.Days {
		days = append(days, since.AddDate(0, 0, i))
		cost = append(cost, b.Days[i].Usage.Cost)
		all = append(all, float64(allTokens(b.Days[i].Usage)))
	}
	b.Cost = drawDays(days, cost, cents)
	b.Tokens = drawDays(days, all, func(n float64) string { return count(int64(n)) })
}

// shares sorts parts by cost, then by tokens, and gives each its share of the largest.
func shares(rows []api.UsageRow) []usageRow {
	slices.SortStableFunc(rows, func(x, y api.UsageRow) int {
		return cmp.Or(cmp.Compare(y.Usage.Cost, x.Usage.Cost), cmp.Compare(allTokens(y.Usage), allTokens(x.Usage)))
	})
	value := func(r *api.UsageRow) float64 { return r.Usage.Cost }
	if len(rows) > 0 && rows[0].Usage.Cost == 0 {
		value = func(r *api.UsageRow) float64 { return float64(allTokens(r.Usage)) }
	}
	out := make([]usageRow, len(rows))
	for i := range rows {
		share := 0.0
		if largest := value(&rows[0]); largest > 0 {
			share = value(&rows[i]) / largest * 100
		}
		out[i] = usageRow{rows[i], decimal(share)}
	}
	return out
}

// allTokens returns the number of all tokens.
func allTokens(u belay.Usage) int { return u.In + u.Out + u.CacheRead + u.CacheWrite }

// cents returns a cost with as many digits as it needs.
func cents(cost float64) string {
	if cost > 0 && cost < 0.01 {
		return "$" + strings.TrimRight(strconv.FormatFloat(cost, 'f', 4, 64), "0")
	}
	return money(cost)
}

// isEmpty reports whether nothing was used in the range.
func (b *usageView) isEmpty() bool { return b.Total.Turns == 0 && allTokens(b.Total.Usage) == 0 }
