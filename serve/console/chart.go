package console

import (
	"math"
	"strconv"
	"time"
)

// chart is a drawing of one number per day. Lengths across are in percent, so that the drawing
// fits every width. Lengths down are pixels.
type chart struct {
	Bars  []chartBar
	Lines []chartLine
	Days  []tick // the names of some days
	Max   float64
}

// chartBar is the bar of one day. Slot is the whole width of the day.
type chartBar struct {
	X, W        string
	SlotX, Slot string
	Y, H        string
	Told        string // the day and its number
}

// chartLine is a line across the chart with its number.
type chartLine struct{ Y, TextY, Text string }

// The measures of a chart.
const (
	chartHeight = 150 // of the tallest bar
	chartTop    = 14  // above it
	chartFoot   = 20  // for the names of the days
	mostNames   = 5   // of days that fit on a phone, if not all do
	weekDays    = 7   // so many days always have their names
)

// drawDays draws one number per day.
func drawDays(days []time.Time, values []float64, show func(float64) string) chart {
	c := chart{}
	if len(days) == 0 {
		return c
	}
	largest := 0.0
	for _, v := range values {
		largest = max(largest, v)
	}
	c.Max = roundUp(largest)
	slot := 100 / float64(len(days))
	gap := slot * 0.2
	every := 1
	if len(days) > weekDays {
		every = (len(days) + mostNames - 1) / mostNames
	}
	for i, day := range days {
		x := float64(i) * slot
		b := chartBar{X: decimal(x + gap/2), W: decimal(slot - gap), SlotX: decimal(x), Slot: decimal(slot), Told: dayName(day) + ": " + show(values[i])}
		height := 0.0
		if c.Max > 0 {
			height = values[i] / c.Max * chartHeight
		}
		if values[i] > 0 {
			height = max(height, 1.5) // a small number is not nothing
		}
		b.Y, b.H = pixels(chartTop+chartHeight-height), pixels(height)
		c.Bars = append(c.Bars, b)
		if (len(days)-1-i)%every == 0 { // the last day always has its name
			at := x + slot/2
			if len(days) > weekDays {
				at = x + slot
			}
			c.Days = append(c.Days, tick{decimal(at), day.Format("2 Jan")})
		}
	}
	if c.Max > 0 {
		for _, part := range []float64{1, 0.5} {
			y := chartTop + chartHeight*(1-part)
			c.Lines = append(c.Lines, chartLine{pixels(y), pixels(y + 4), show(c.Max * part)})
		}
	}
	return c
}

// roundUp returns the next number with one leading digit of 1, 2, 4, 6 or 8, so that half of it
// is easy to read too.
func roundUp(n float64) float64 {
	if n <= 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(n)))
	for _, step := range []float64{1, 2, 4, 6, 8} {
		if n <= step*unit*(1+1e-9) {
			return step * unit
		}
	}
	return 10 * unit
}

// pixels returns a length.
func pixels(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }

// dayName names a day.
func dayName(day time.Time) string { return day.Format("Mon 2 Jan 2006") }

// dayAnchor aligns the names of days. The bars of many days are narrow: their names end with
// the bar, so that the last name does not leave the chart.
func (c *chart) dayAnchor() string {
	if len(c.Bars) > weekDays {
		return "end"
	}
	return "middle"
}
