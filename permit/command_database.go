package permit

import (
	"path"
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// databaseCommands are the clients of databases.
func databaseCommands(t table) {
	t.add("sqlite3 sqlite", sqliteCommand)
	t.add("psql pgcli", sqlCommand("c= command= f= file= d= dbname= h= host= p= port= U= username= o=> output=> L=> log-file=> v= set= variable= P= pset= F= field-separator= R= record-separator= T= "+
		"a A b e E H l n q s S t w W x X z 0 1 ? V version help no-psqlrc tuples-only no-align csv html quiet echo-all echo-queries single-transaction list expanded no-password password no-readline", "c command"))
	t.add("mysql mariadb mycli", sqlCommand("* e= execute= h= host= P= port= u= user= p=? password=? D= database= S= socket= tee=> defaults-file=! defaults-extra-file=! init-command= pager=$ "+
		"plugin-dir=! ssl-ca=< ssl-cert=< ssl-key=< B N s t v default-character-set= protocol=", "e execute"))
	t.add("clickhouse-client clickhouse duckdb sqlcmd usql cockroach", sqlCommand("* q= query= c= command= s= e= h= host= Q= i=< d= u= user= password= port= queries-file=< unsigned! f=", "q query c command e Q"))
	t.add("redis-cli valkey-cli", redisCommand)
	t.add("mongosh mongo", func(c *invoked) {
		if !asksOnly(c) {
			c.unknown("runs code in the database that Belay does not check")
			for _, a := range c.args {
				if destroysData(a.text) {
					c.protect(destroyData, "removes data")
				}
			}
		}
	})
	t.add("dropdb dropuser", func(c *invoked) {
		c.known(c.args)
		c.zone(ZoneExternal, "changes a database")
		c.protect(destroyData, "removes a database")
	})
	t.add("mysqladmin", func(c *invoked) {
		c.known(c.args)
		c.zone(ZoneExternal, "changes a database")
		for _, a := range c.args {
			if a.text == "drop" || a.text == "flush-tables" || a.text == "shutdown" {
				c.protect(destroyData, "removes a database")
			}
		}
	})
	t.add("pg_dump pg_dumpall mysqldump mongodump mongoexport pg_isready", func(c *invoked) {
		c.options(c.args, "* f=> file=> r=> result-file=> o=> out=> h= host= d= dbname= U= p= u= t= n= T= N=")
		c.zone(ZoneNetwork, "reads a database")
	})
	t.add("pg_restore", func(c *invoked) {
		o := c.options(c.args, "* f=> file=> d= dbname= h= host= U= p= n= t= c clean C create L=< use-list=< l list")
		c.readAll(o.rest)
		if o.has("l", "list") {
			return
		}
		c.zone(ZoneExternal, "changes a database")
		if o.has("c", "clean") {
			c.protect(destroyData, "removes data from the database")
		}
	})
	t.add("alembic flyway liquibase goose migrate dbmate prisma sequelize knex typeorm atlas", func(c *invoked) {
		if asksOnly(c) {
			return
		}
		o := c.options(c.args, "*")
		c.zone(ZoneExternal, "changes a database")
		for _, a := range o.rest {
			if oneOf(strings.ToLower(a.text), "down downgrade reset clean drop drop-all dropall rollback undo") || strings.Contains(a.text, "drop") || strings.Contains(a.text, ":undo") {
				c.protect(destroyData, "removes data from the database")
			}
		}
	})
}

// removing matches SQL statements and other commands that remove data.
var removing = lazyregexp.New(`(?i)\b(drop|truncate|delete|dropdatabase|deletemany|deleteone|remove|flushall|flushdb|alter\s+table\s+\S+\s+drop)\b`)

func destroysData(text string) bool { return removing.MatchString(text) }

// sqlCommand judges clients of database servers. names are the options whose values are
// statements.
func sqlCommand(list, names string) judge {
	given := strings.Fields(names)
	return func(c *invoked) {
		if asksOnly(c) {
			return
		}
		o := c.options(c.args, list)
		c.zone(ZoneExternal, "may change a database")
		for _, h := range o.values("h", "host") {
			if !path.IsAbs(h.text) {
				c.send(h)
			}
		}
		texts := o.values(given...)
		for _, f := range o.values("f", "file") {
			c.read(f)
			c.unknown("cannot determine which statements it runs")
		}
		if len(texts) == 0 && !o.has("f", "file", "l", "list") {
			texts = []arg{c.stdin}
		}
		for _, t := range texts {
			switch {
			case !t.known:
				c.unknown("cannot determine which statements it runs")
			case strings.Contains(t.text, `\`) || strings.Contains(strings.ToLower(t.text), "program") || strings.Contains(strings.ToLower(t.text), "system "):
				c.unknown("the statements may run programs or use files")
			}
			if destroysData(t.text) {
				c.protect(destroyData, "removes data")
			}
		}
	}
}

func redisCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "+h= p= s= a= user= pass= u= r= i= n= x d= D= eval=! t= cacert=< cert=< key=< pipe! rdb=> functions-rdb=> cluster=! memkeys bigkeys hotkeys scan pattern= stat latency c raw no-raw csv json tls "+
		"no-auth-warning askpass 2 3 e X= sni= insecure count= quoted-pattern= verbose lru-test=! show-pushes=")
	c.zone(ZoneExternal, "may change a database")
	c.known(o.rest)
	for _, h := range o.values("h", "u") {
		c.send(h)
	}
	if len(o.rest) == 0 && !o.has("stat", "latency", "bigkeys", "memkeys", "hotkeys", "scan") {
		if !c.stdin.known {
			c.unknown("cannot determine which commands it runs")
		}
	}
	verbs := strings.ToLower(word(o.rest, 0) + " " + c.stdin.text)
	for _, hazard := range []string{"flushall", "flushdb", "del ", "unlink ", "shutdown", "swapdb", "debug"} {
		if strings.Contains(verbs, hazard) {
			c.protect(destroyData, "removes data")
			break
		}
	}
	if oneOf(strings.ToLower(word(o.rest, 0)), "config eval evalsha script module slaveof replicaof save bgsave acl migrate function") {
		c.unknown("the command may make the server run code, write files, change its settings or copy data")
	}
}
