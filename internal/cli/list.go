package cli

// list prints a table for people, or with --json one object per line.
type list struct {
	a      *app
	asJSON bool
	table  table
	err    error // the first error of printJSON
}

// newList returns an empty list with these column titles.
func (a *app) newList(asJSON bool, titles ...string) *list {
	l := &list{a: a, asJSON: asJSON}
	l.table.add(titles...)
	return l
}

// add adds an entry: the value for --json, and the cells of the row for the table.
func (l *list) add(value any, cells ...string) {
	l.object(value)
	l.row(cells...)
}

// object prints a value with --json. If one object has several rows, call object and row
// instead of add.
func (l *list) object(value any) {
	if l.asJSON && l.err == nil {
		l.err = l.a.printJSON(value)
	}
}

func (l *list) row(cells ...string) { l.table.add(cells...) }

// rows returns the number of rows without the titles.
func (l *list) rows() int { return len(l.table.rows) - 1 }

// end prints the table, or the text none if the table has no rows. With --json everything
// is already printed.
func (l *list) end(none string) error {
	switch {
	case l.asJSON:
		return l.err
	case l.rows() == 0:
		if none != "" {
			l.a.remarkf("%s", none)
		}
		return nil
	default:
		return l.table.write(l.a.out, l.a.onOut.dim)
	}
}
