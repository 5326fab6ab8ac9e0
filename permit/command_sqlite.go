package permit

import "strings"

// sqliteCommand judges sqlite3. Its words are a database file and statements.
func sqliteCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "*-cmd= init=! separator= nullvalue= newline= mmap= vfs= maxsize= lookaside= pagecache= key= hexkey= textkey= readonly batch csv json line list column header noheader table markdown "+
		"box html quote tabs ascii bail echo interactive stats safe version help A! ar! append deserialize zip memtrace")
	texts := append(o.from(1), o.values("cmd")...)
	if len(texts) == 0 {
		texts = []arg{c.stdin}
	}
	only := true
	for _, t := range texts {
		only = c.sqliteText(t) && only
	}
	if len(o.rest) == 0 || o.rest[0].text == ":memory:" || o.rest[0].text == "" {
		return
	}
	if strings.HasPrefix(o.rest[0].text, "file:") {
		c.unknown("the database is a URI, whose options Belay does not check")
	}
	if only || o.has("readonly") {
		c.read(o.rest[0])
		return
	}
	c.zone(ZoneWorkspace, "")
	c.write(o.rest[0])
}

// sqliteCommands are dot-commands that use no other file and run no program.
const sqliteCommands = "tables schema indexes indices databases mode headers header width timeout timer stats show help exit quit fullschema dbinfo nullvalue separator echo bail print changes dump eqp explain limit"

// sqliteText judges SQL statements. It reports whether they only read.
func (c *invoked) sqliteText(t arg) bool {
	if !t.known {
		c.unknown("cannot determine which statements it runs")
		return false
	}
	var statements strings.Builder
	for line := range strings.Lines(t.text) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), ".")
		if !ok {
			statements.WriteString(line)
			continue
		}
		name, _, _ := strings.Cut(command, " ")
		if !oneOf(name, sqliteCommands) {
			c.unknown("the command ." + shown(name) + " may use files or run programs")
		}
	}
	if destroysData(t.text) {
		c.protect(destroyData, "removes data")
	}
	r := sqlReader{text: statements.String()}
	r.statements()
	if r.why != "" {
		c.unknown(r.why)
	}
	return !r.writes
}

// sqlReader scans SQLite statements token by token. It need not understand them. But it
// must find the functions that they call, because some functions read or write files or
// run programs.
type sqlReader struct {
	text   string
	at     int
	writes bool   // a statement changes the database
	why    string // why the statements may use files or programs, or empty
}

// sqlToken is a word or a name in lower case, or a single character. A string becomes one
// apostrophe.
type sqlToken struct {
	text string
	name bool // the token is quoted, so it is not a keyword
}

// These statements, functions, types and pragmas use only the database.
const (
	sqlReads     = "select with values explain pragma"
	sqlChanges   = "insert update delete replace create drop alter begin commit end rollback savepoint release analyze reindex vacuum"
	sqlFunctions = "count sum avg min max total group_concat string_agg length octet_length lower upper substr substring trim ltrim rtrim replace round abs sign mod power pow sqrt exp ln log log10 log2 ceil ceiling floor " +
		"trunc coalesce ifnull nullif iif if date time datetime julianday strftime unixepoch timediff printf format hex unhex quote random randomblob zeroblob typeof instr like glob char unicode concat concat_ws likely " +
		"unlikely likelihood changes total_changes last_insert_rowid sqlite_version row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value generate_series match bm25 " +
		"highlight snippet soundex median percentile sin cos tan pi radians degrees rowid raise cast regexp"
	sqlKeywords = "in as and or not where on using select from join union all distinct having by limit offset over filter exists values set when then else case between is null key check unique default primary " +
		"references returning generated always set except intersect into end partition"
	sqlTypes   = "varchar character nchar nvarchar varying decimal numeric number float double real int integer bigint smallint tinyint text blob clob datetime timestamp time date bit boolean char"
	sqlModules = "fts3 fts4 fts5 rtree rtree_i32 geopoly"
	sqlPragmas = "table_info table_xinfo table_list index_list index_info index_xinfo foreign_key_list foreign_keys foreign_key_check database_list compile_options integrity_check quick_check user_version " +
		"schema_version application_id journal_mode synchronous page_size page_count freelist_count encoding cache_size busy_timeout collation_list function_list module_list pragma_list auto_vacuum " +
		"wal_checkpoint optimize case_sensitive_like recursive_triggers defer_foreign_keys mmap_size temp_store secure_delete wal_autocheckpoint max_page_count"
)

func (r *sqlReader) statements() {
	var before, last sqlToken // the two previous tokens
	first := true             // the next token begins a statement
	for {
		t, ok := r.token()
		if !ok {
			return
		}
		if first && t.text != ";" {
			r.begins(t)
		}
		switch {
		case t.text == "(":
			r.calls(before, last)
		case !t.name && oneOf(t.text, "insert update delete"):
			r.writes = true
		case oneOf(t.text, "fsdir zipfile"): // these tables are files
			r.fail("the statements read files")
		case !last.name && last.text == "pragma" && !oneOf(t.text, sqlPragmas):
			r.fail("Belay does not know what the pragma " + shown(t.text) + " does")
		case !last.name && last.text == "vacuum" && t.text != ";", !before.name && before.text == "vacuum" && t.text == "into":
			r.fail("the statements write another file")
		case t.text == "=" && before.text == "pragma":
			r.writes = true
		}
		first = t.text == ";"
		before, last = last, t
	}
}

// begins judges the first word of a statement.
func (r *sqlReader) begins(t sqlToken) {
	switch {
	case !t.name && oneOf(t.text, sqlReads):
	case !t.name && oneOf(t.text, sqlChanges):
		r.writes = true
	default:
		r.fail("Belay does not know what " + shown(t.text) + " does")
	}
}

// calls judges a word before a parenthesis: a keyword, a type, a function, or the table
// of a CREATE or INSERT statement.
func (r *sqlReader) calls(before, last sqlToken) {
	name := last.text
	word := name != "" && (isName(name) || last.name)
	pragma, isPragma := strings.CutPrefix(name, "pragma_")
	switch {
	case !word, !last.name && oneOf(name, sqlKeywords), oneOf(name, sqlFunctions), strings.HasPrefix(name, "json"), oneOf(name, sqlTypes):
	case isPragma && oneOf(pragma, sqlPragmas), !last.name && oneOf(name, sqlPragmas) && before.text == "pragma":
	case !before.name && before.text == "using":
		if !oneOf(name, sqlModules) {
			r.fail("Belay does not know what a table of the kind " + shown(name) + " reads")
		}
	case !before.name && oneOf(before.text, "table into on references index view with recursive exists"):
	default:
		r.fail("Belay does not know what the function " + shown(name) + " does")
	}
}

func (r *sqlReader) fail(why string) {
	if r.why == "" {
		r.why = why
	}
}

func (r *sqlReader) token() (t sqlToken, ok bool) {
	r.blanks()
	if r.at >= len(r.text) {
		return t, false
	}
	switch c := r.text[r.at]; {
	case c == '\'':
		r.quoted('\'')
		return sqlToken{text: "'"}, true
	case c == '"' || c == '`':
		return sqlToken{text: strings.ToLower(r.quoted(c)), name: true}, true
	case c == '[':
		return sqlToken{text: strings.ToLower(r.quoted(']')), name: true}, true
	case isName(string(c)) || c >= 0x80:
		from := r.at
		for r.at < len(r.text) && (isName("x"+r.text[r.at:r.at+1]) || r.text[r.at] == '$' || r.text[r.at] >= 0x80) {
			r.at++
		}
		return sqlToken{text: strings.ToLower(r.text[from:r.at])}, true
	default:
		r.at++
		return sqlToken{text: string(c)}, true
	}
}

// quoted returns a quoted text without its quotes.
func (r *sqlReader) quoted(end byte) string {
	from := r.at + 1
	for r.at = from; r.at < len(r.text); r.at++ {
		if r.text[r.at] != end {
			continue
		}
		if r.at+1 < len(r.text) && r.text[r.at+1] == end && end != ']' {
			r.at++
			continue
		}
		r.at++
		return r.text[from : r.at-1]
	}
	return r.text[min(from, len(r.text)):]
}

// blanks skips blanks and comments.
func (r *sqlReader) blanks() {
	for r.at < len(r.text) {
		rest := r.text[r.at:]
		switch {
		case strings.IndexByte(" \t\r\n\f", rest[0]) >= 0:
			r.at++
		case strings.HasPrefix(rest, "--"):
			r.skip("\n")
		case strings.HasPrefix(rest, "/*"):
			r.skip("*/")
		default:
			return
		}
	}
}

// skip moves past the next occurrence of end.
func (r *sqlReader) skip(end string) {
	if at := strings.Index(r.text[r.at+2:], end); at >= 0 {
		r.at += 2 + at + len(end)
	} else {
		r.at = len(r.text)
	}
}
