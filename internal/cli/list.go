package cli

// list prints things of one kind: a table for people, or with --json one object a line for programs.
type list struct {
	a      *app
	asJSON bool
	table  table
	err    error // the first failure to print
}

// newList begins a list with the titles of its columns.
func (a *app) newList(asJSON bool, titles ...string) *list {
	l := &list{a: a, asJSON: asJSON}
	l.table.add(titles...)
	return l
}

// add adds an entry: the value for --json, and the cells of its row.
func (l *list) add(value any, cells ...string) {
	l.object(value)
	l.row(cells...)
}

// object prints a value with --json. Use it with row where one object is several rows.
func (l *list) object(value any) {
	if l.asJSON && l.err == nil {
		l.err = l.a.printJSON(value)
	}
}

// row adds a row to the table.
func (l *list) row(cells ...string) { l.table.add(cells...) }

// rows returns how many rows there are.
func (l *list) rows() int { return len(l.table.rows) - 1 }

// end prints the table, or a remark if it has no rows. With --json everything is already printed.
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
