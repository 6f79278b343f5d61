// Tokens of the Reflex rule language (.rfx).
//
// All keywords are soft: the parser's `identifier` rule accepts every one of them. A regular
// expression literal exists only directly after `line` and `matches` and is one token together
// with that word, so that `/` stays division everywhere else. The lexer never fails: what it does
// not know becomes ERROR_CHAR or UNTERMINATED, and the parser's error names it.
lexer grammar RuleLexer;

// ---- literals that begin with a keyword
LINE_RE : 'line' BLANK+ '/' REGEX_CHAR+ '/' ;
MATCHES_RE : 'matches' BLANK+ '/' REGEX_CHAR+ '/' ;

// ---- keywords: header
K_PACK : 'pack' ; K_REQUIRES : 'requires' ; K_ENGINE : 'engine' ; K_DSL : 'dsl' ;
K_IMPORT : 'import' ; K_AS : 'as' ; K_ONLY : 'only' ; K_CLOCK : 'clock' ; K_LIMITS : 'limits' ;
K_PER : 'per' ; K_EXPORT : 'export' ;

// ---- keywords: declarations
K_EVENT : 'event' ; K_PROFILE : 'profile' ; K_LIST : 'list' ; K_MACRO : 'macro' ;
K_DECODER : 'decoder' ; K_SIGNAL : 'signal' ; K_FEATURE : 'feature' ; K_FAULT : 'fault' ;
K_EXTERNAL : 'external' ; K_CAUSES : 'causes' ; K_MASKS : 'masks' ; K_EXPLAINED : 'explained' ;
K_INCIDENT : 'incident' ; K_RULE : 'rule' ; K_TEST : 'test' ; K_OVERLAY : 'overlay' ;
K_SUPPRESS : 'suppress' ; K_MAINTENANCE : 'maintenance' ; K_COHORT : 'cohort' ; K_REPAIR : 'repair' ;

// ---- keywords: events, profiles, lists, decoders
K_KEY : 'key' ; K_COUNTER : 'counter' ; K_REDACT : 'redact' ; K_DEDUP : 'dedup' ;
K_EXTENDS : 'extends' ; K_ABSTRACT : 'abstract' ; K_ENUM : 'enum' ; K_FALLBACK : 'fallback' ;
K_MATCHES : 'matches' ; K_ADAPTIVE : 'adaptive' ; K_PRIOR_SCALE : 'prior_scale' ;
K_LABEL : 'label' ; K_COLUMN : 'column' ; K_PREFIX : 'prefix' ; K_LINE : 'line' ;
K_FOLD : 'fold' ; K_IGNORE : 'ignore' ;

// ---- keywords: signals and features
K_ON : 'on' ; K_WHERE : 'where' ; K_WITHIN : 'within' ; K_THEN : 'then' ;
K_STRICTLY : 'strictly' ; K_ABSENT : 'absent' ; K_FOR : 'for' ; K_UNLESS : 'unless' ;
K_BETWEEN : 'between' ; K_KEEP : 'keep' ; K_EARLIEST : 'earliest' ; K_LATEST : 'latest' ;
K_ALL : 'all' ; K_ANY : 'any' ; K_BITS : 'bits' ; K_MAX : 'max' ; K_MIN : 'min' ;
K_AFTER : 'after' ; K_MATCH : 'match' ; K_SKIP : 'skip' ; K_HOLDS : 'holds' ;
K_COUNT : 'count' ; K_DISTINCT : 'distinct' ; K_BURSTS : 'bursts' ; K_OF : 'of' ;
K_GRADED : 'graded' ; K_EXTRA : 'extra' ; K_RISING : 'rising' ; K_STEADY : 'steady' ; K_VOTES : 'votes' ;
K_EACH : 'each' ; K_REARM : 'rearm' ; K_EXACT : 'exact' ; K_NONE : 'none' ; K_THE : 'the' ;
K_LAST : 'last' ; K_WHEN : 'when' ; K_CLEAR : 'clear' ; K_BELOW : 'below' ; K_ABOVE : 'above' ;
K_NODATA : 'nodata' ; K_HOLD : 'hold' ; K_INTERRUPT : 'interrupt' ; K_PEERS : 'peers' ;
K_AT : 'at' ; K_LEAST : 'least' ; K_EXCEPTIONS : 'exceptions' ; K_LEAK : 'leak' ;
K_LEARN : 'learn' ; K_WAS : 'was' ; K_RESET : 'reset' ; K_HALF_LIFE : 'half_life' ;
K_GAP : 'gap' ; K_SLACK : 'slack' ; K_TARGET : 'target' ; K_OVER : 'over' ;
K_STALE_AFTER : 'stale_after' ; K_ALPHA : 'alpha' ;

// ---- keywords: causes, incidents, later constructs
K_PRIOR : 'prior' ; K_SEVERITY : 'severity' ; K_REMEDY : 'remedy' ; K_P : 'p' ; K_LAG : 'lag' ;
K_SCOPE : 'scope' ; K_WEIGHT : 'weight' ; K_BY : 'by' ; K_OPENS : 'opens' ;
K_SETTLE : 'settle' ; K_MERGE : 'merge' ; K_CONFIRM : 'confirm' ; K_SUSPECT : 'suspect' ;
K_UNEXPLAINED : 'unexplained' ; K_VERDICT : 'verdict' ; K_ANNOTATE : 'annotate' ;
K_ACTION : 'action' ; K_REPEAT : 'repeat' ; K_RESOLVE : 'resolve' ; K_SIGNALS : 'signals' ;
K_UNTIL : 'until' ; K_REASON : 'reason' ; K_FROM : 'from' ; K_GRACE : 'grace' ;
K_EXTEND : 'extend' ; K_SET : 'set' ; K_DISABLE : 'disable' ; K_EXCEPT : 'except' ;
K_ALIAS : 'alias' ; K_KIND : 'kind' ; K_SYNERGY : 'synergy' ;
K_LIMIT : 'limit' ; K_MODE : 'mode' ;

// ---- keywords: tests
K_NODES : 'nodes' ; K_JOB : 'job' ; K_WITH : 'with' ; K_TO : 'to' ; K_EVERY : 'every' ;
K_LATE : 'late' ; K_LOG : 'log' ; K_SOURCE : 'source' ; K_EXPECT : 'expect' ; K_NO : 'no' ;
K_BEFORE : 'before' ; K_TOP : 'top' ; K_BECAUSE : 'because' ; K_SILENT : 'silent' ;
K_UNDETERMINED : 'undetermined' ; K_GPU : 'gpu' ; K_ALLOW : 'allow' ; K_STRICT : 'strict' ;
K_SHUFFLE : 'shuffle' ;

// ---- keywords: expressions
K_AND : 'and' ; K_OR : 'or' ; K_NOT : 'not' ; K_IN : 'in' ; K_LIKE : 'like' ; K_IS : 'is' ;
K_MISSING : 'missing' ; K_TRUE : 'true' ; K_FALSE : 'false' ;

// ---- units
K_SECOND : 'second' ; K_MINUTE : 'minute' ; K_HOUR : 'hour' ; K_DAY : 'day' ;
RATE_UNIT : ( [kKMGT] 'i'? )? ( 'bit' | 'byte' | 'B' | 'b' ) '/s' ;
UNIT : 'celsius' | 'watt' | 'kW' | 'mW' | 'hertz' | 'Hz' | 'kHz' | 'MHz' | 'GHz' | 'byte' | 'kB'
     | 'KB' | 'MB' | 'GB' | 'TB' | 'KiB' | 'MiB' | 'GiB' | 'TiB' | 'nats' | 'ratio' ;

// ---- words and numbers
REPEAT_COUNT : 'x' DIGIT+ ;
IDENT : [a-zA-Z_] [a-zA-Z_0-9]* ;
DATE : DIGIT DIGIT DIGIT DIGIT '-' DIGIT DIGIT '-' DIGIT DIGIT ;
VERSION : DIGIT+ '.' DIGIT+ '.' DIGIT+ ( '-' [0-9A-Za-z.]+ )? ;
HEX : '0' [xX] [0-9a-fA-F]+ ;
DURATION : ( DIGIT+ ( '.' DIGIT+ )? DURATION_UNIT )+ ;
PERCENT : DIGIT+ ( '.' DIGIT+ )? '%' ;
QUANTITY : DIGIT+ ( '.' DIGIT+ )? ( [a-zA-Z]+ | RATE_UNIT ) ;
REAL : DIGIT+ '.' DIGIT+ ( [eE] [+-]? DIGIT+ )? | DIGIT+ [eE] [+-]? DIGIT+ ;
INT : DIGIT+ ;

// ---- strings
RAW_STRING : '"""' .*? '"""' ;
STRING : '"' STRING_CHAR* '"' ;
UNTERMINATED : '"' STRING_CHAR* ;

// ---- punctuation
LBRACE : '{' ; RBRACE : '}' ; LPAREN : '(' ; RPAREN : ')' ; LBRACKET : '[' ; RBRACKET : ']' ;
COMMA : ',' ; SEMICOLON : ';' ; COLON : ':' ; ARROW : '->' ; RANGE : '..' ; DOT : '.' ;
EQ : '==' ; NE : '!=' ; LE : '<=' ; GE : '>=' ; LT : '<' ; GT : '>' ; ASSIGN : '=' ;
PLUS_MINUS : '+-' ; PLUS : '+' ; MINUS : '-' ; STAR : '*' ; SLASH : '/' ; MODULO : '%' ;
AMP : '&' ; PIPE : '|' ; CARET : '^' ; TILDE : '~' ; QUESTION : '?' ;

// ---- what the parser does not see
COMMENT : '#' ~[\r\n]* -> channel(HIDDEN) ;
SPACE : [ \t\r\n]+ -> skip ;
ERROR_CHAR : . ;

fragment BLANK : [ \t] ;
fragment DIGIT : [0-9] ;
fragment DURATION_UNIT : 'ns' | 'us' | 'ms' | 's' | 'm' | 'h' | 'd' | 'w' ;
fragment REGEX_CHAR : '\\' ~[\r\n] | ~[/\\\r\n] ;
fragment STRING_CHAR : '\\' ~[\r\n] | ~["\\\r\n] ;
