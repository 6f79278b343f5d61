// Grammar of the Reflex rule language (.rfx): language.md A1 to A12 and decoders.
//
// `declaration` is the entry: the driver parses one declaration at a time, so that a mistake in
// one leaves the others alone. Newlines mean nothing; `;` may separate statements. Expressions are
// flat operator lists (expr, comparison, sum); the builder gives them precedence. Comparisons do
// not chain, so `count .. where it.code == 31 >= 2` ends its predicate before `>= 2`.
// No rule is left-recursive and no action or predicate is used: compiler/parse/expected.cpp walks
// the automaton of this grammar to tell what could have stood at the place of an error.
parser grammar RuleParser;
options { tokenVocab = RuleLexer; }

file : ( declaration | SEMICOLON )* EOF ;

declaration
  : packDecl | importDecl | clockDecl | limitsDecl
  | K_EXPORT? ( eventDecl | profileDecl | listDecl | macroDecl | decoderDecl | signalDecl
              | featureDecl | faultDecl | incidentDecl )
  | edgeDecl | testDecl | overlayDecl | verdictRuleDecl | suppressDecl | maintenanceDecl
  | baselineDecl | synergyDecl
  ;

// ---------------------------------------------------------------- A1 pack head
packDecl : K_PACK dottedName version ( K_REQUIRES K_ENGINE versionRange )? ( K_DSL INT )? ;
importDecl : K_IMPORT dottedName versionRange? ( K_AS identifier )?
             ( K_ONLY LPAREN dottedName ( COMMA dottedName )* RPAREN )? ;
clockDecl : K_CLOCK LBRACE settings RBRACE ;
limitsDecl : K_LIMITS LBRACE settings RBRACE ;
settings : ( setting | SEMICOLON | COMMA )* ;
setting : identifier sum ( K_PER identifier )? ;
version : INT | REAL | VERSION ;
versionRange : ( CARET | TILDE | comparisonOp )? version ;

// ---------------------------------------------------------------- A2 events
eventDecl : K_EVENT dottedName ( K_EXTENDS dottedName | K_ABSTRACT )*
            LBRACE ( fieldDecl | SEMICOLON | COMMA )* RBRACE dedup? ;
fieldDecl : ( K_KEY | K_COUNTER )* identifier COLON typeRef K_REDACT? ;
dedup : K_DEDUP ( LPAREN identifier ( COMMA identifier )* RPAREN | identifier ) K_FOR sum ;
typeRef
  : K_ENUM LPAREN identifier ( COMMA identifier )* RPAREN QUESTION?
  | ( dottedName | RATE_UNIT ) ( LT typeArg ( COMMA typeArg )* GT )? QUESTION?
  ;
typeArg : typeRef | INT ;

// ---------------------------------------------------------------- A3 profiles
profileDecl : K_PROFILE dottedName profileOption*
              LBRACE ( profileItem | SEMICOLON | COMMA )* RBRACE ;
profileOption : K_EXTENDS dottedName | K_ABSTRACT | K_FALLBACK | K_MATCHES expr ;
profileItem
  : K_PRIOR_SCALE dottedName ASSIGN sum
  | K_ADAPTIVE? identifier ( COLON typeRef )?
    ( ASSIGN expr ( K_WITHIN sum RANGE sum )? | LBRACE settings RBRACE )
  ;

// ---------------------------------------------------------------- A4 lists, macros, overlays
listDecl : K_LIST dottedName ( COLON typeRef )?
           ( ASSIGN listLiteral | K_FROM STRING ( K_COLUMN INT )? ) ;
macroDecl : K_MACRO identifier LPAREN ( macroParam ( COMMA macroParam )* )? RPAREN ASSIGN expr ;
macroParam : identifier ( COLON dottedName )? ;

overlayDecl : K_OVERLAY dottedName K_FOR dottedName versionRange?
              LBRACE ( overlayEntry | SEMICOLON )* RBRACE ;
overlayEntry
  : K_EXTEND K_LIST dottedName listLiteral
  | K_SET K_PROFILE dottedName profileItem
  | K_DISABLE K_SIGNAL dottedName ( K_REASON STRING | K_UNTIL ( DATE | STRING ) )*
  | K_EXCEPT dottedName identifier LPAREN identifier ( COMMA identifier )* RPAREN
    LBRACKET ( exceptRow | COMMA )* RBRACKET
  | K_ALIAS K_KIND ( dottedName | STRING ) ASSIGN dottedName
    ( LBRACE ( assignment | SEMICOLON | COMMA )* RBRACE )?
  ;
exceptRow : LPAREN sum ( COMMA sum )* RPAREN ;
assignment : identifier ASSIGN expr ;

// ---------------------------------------------------------------- decoders
decoderDecl : K_DECODER dottedName ( K_FOR identifier )?
              LBRACE ( decoderItem | SEMICOLON )* RBRACE ;
decoderItem
  : K_PREFIX identifier
  | LINE_RE ( K_FOLD INT )? ARROW
    ( K_IGNORE | dottedName LBRACE ( assignment | SEMICOLON | COMMA )* RBRACE )
  ;

// ---------------------------------------------------------------- A5, A6, A8 signals
signalDecl : K_SIGNAL dottedName keys ( K_WITHIN sum )?
             LBRACE ( signalClause | SEMICOLON )* RBRACE signalTail* ;
keys : K_ON ( identifier | LPAREN identifier ( COMMA identifier )* RPAREN ) ;
signalTail : leak | holds | was ;
signalClause
  : identifier COLON kindPattern                                      # firstStep
  | K_THEN K_ABSENT ( identifier COLON )? kindPattern K_FOR sum       # absentStep
  | K_THEN ( K_STRICTLY | TILDE sum )? ( identifier COLON )? kindPattern  # thenStep
  | K_UNLESS ( identifier COLON )? kindPattern
    ( K_BETWEEN identifier K_AND identifier )?                        # unlessClause
  | K_AND K_NONE kindPattern K_IN K_THE K_LAST sum                    # guardClause
  | K_KEEP ( K_EARLIEST | K_LATEST | K_ALL K_MAX sum )                # keepMode
  | K_KEEP sum                                                        # keepSpan
  | K_AFTER K_MATCH K_SKIP identifier identifier                      # afterMatch
  | K_COUNT countSource comparisonOp sum K_WITHIN sum countOption*    # countClause
  | K_COUNT countSource K_WITHIN sum K_GRADED gradedOption*           # gradedClause
  | K_WHEN expr                                                       # whenClause
  | K_FOR sum                                                         # forClause
  | K_WITHIN sum                                                      # withinClause
  | K_CLEAR ( ( K_BELOW | K_ABOVE ) sum | K_WHEN expr )               # clearClause
  | K_NODATA ( K_HOLD | K_INTERRUPT ) ( K_FOR sum )?                  # nodataClause
  | K_PEERS K_AT K_LEAST sum                                          # peersClause
  | K_EXCEPTIONS identifier LPAREN identifier EQ ( COMMA identifier EQ )* RPAREN  # exceptionsClause
  | signalTail                                                        # tailClause
  ;
leak : K_LEAK bareNumber ( K_PER rateWord )? K_LEARN? ;
holds : K_HOLDS sum ;
was : K_WAS dottedName ;
rateWord : timeWord | K_JOB | K_INCIDENT | IDENT ;
kindPattern : dottedName ( K_WHERE expr )? ;
countSource
  : K_DISTINCT dottedName K_OF kindPattern
  | K_BURSTS LPAREN kindPattern ( COMMA callOption )* RPAREN
  | kindPattern
  ;
gradedOption : K_EXTRA sum | K_RISING | K_STEADY | K_VOTES ;
countOption : K_EACH | K_REARM sum | K_EXACT ( K_MAX sum )? ;

// ---------------------------------------------------------------- A7 features
featureDecl : K_FEATURE dottedName keys ASSIGN identifier callArguments featureReset* was? ;
featureReset : K_RESET K_ON kindPattern ;

// ---------------------------------------------------------------- A9 causes
faultDecl : ( K_FAULT | K_EXTERNAL ) dottedName keys LBRACE ( faultItem | SEMICOLON )* RBRACE ;
faultItem
  : K_PRIOR bareNumber ( K_PER rateWord )?
  | K_HALF_LIFE sum
  | K_SEVERITY identifier
  | K_REMEDY identifier
  ;
edgeDecl
  : dottedName ( K_CAUSES | K_MASKS ) dottedName ( COMMA dottedName )* edgeOption*
  | dottedName K_EXPLAINED K_BY dottedName ( K_ON identifier )? edgeOption*
  ;
edgeOption
  : K_P bareNumber
  | K_WEIGHT sum
  | K_LAG sum RANGE sum
  | K_SCOPE identifier
  | K_WHEN K_AT K_LEAST sum K_IN sum
  | K_LEARN
  ;

// ---------------------------------------------------------------- A10, A11
// `or` never follows an expression: prediction would scan every chain of `or` to its end.
incidentDecl : K_INCIDENT dottedName keys LBRACE ( incidentItem | SEMICOLON )* RBRACE ;
incidentItem
  : K_OPENS K_ON dottedName ( K_OR dottedName )* ( K_WHERE expr )?  // where: of the last kind
  | K_SETTLE sum
  | K_MERGE K_FOR sum
  | K_CONFIRM sum
  | K_SUSPECT sum
  | K_UNEXPLAINED sum
  ;
verdictRuleDecl : K_RULE dottedName K_ON K_VERDICT identifier K_OF dottedName ( K_WHERE expr )?
                  LBRACE ( ruleItem | SEMICOLON )* RBRACE ;
ruleItem
  : K_SEVERITY expr
  | K_LABEL identifier ASSIGN expr
  | K_ANNOTATE identifier ( STRING | RAW_STRING )
  | K_ACTION identifier LPAREN ( expr ( COMMA expr )* )? RPAREN actionOption*
  | K_REPEAT K_EVERY sum
  | K_RESOLVE K_AFTER sum
  ;
actionOption : K_LIMIT INT ( K_PER identifier )? K_IN sum | K_MODE identifier ;
suppressDecl : K_SUPPRESS dottedName LBRACE ( suppressItem | SEMICOLON )* RBRACE ;
suppressItem
  : K_SIGNALS dottedName ( COMMA dottedName )*
  | K_WHERE expr
  | K_UNTIL ( DATE | STRING )
  | K_REASON STRING
  ;
// What changes a node's habit: a rollout moves it to another cohort, a repair begins it anew.
baselineDecl
  : K_COHORT K_FROM K_EVENT dottedName K_BY identifier K_ON identifier
  | K_REPAIR K_FROM K_EVENT dottedName K_ON identifier
  ;
maintenanceDecl : K_MAINTENANCE K_FROM K_EVENT dottedName K_UNTIL dottedName K_ON identifier
                  ( K_GRACE sum )? ;
synergyDecl : K_SYNERGY dottedName K_FROM dottedName ( K_AND dottedName )+ K_WEIGHT sum ;

// ---------------------------------------------------------------- A12 tests
testDecl : K_TEST STRING testTable? LBRACE ( testStatement | SEMICOLON )* RBRACE ;
testTable : K_FOR ( LPAREN identifier ( COMMA identifier )* RPAREN | identifier )
            K_IN LBRACKET testRow ( COMMA testRow )* COMMA? RBRACKET ;
testRow : LPAREN sum ( COMMA sum )* RPAREN | sum ;
testStatement
  : K_NODES target ( COMMA target )* ( K_AS dottedName )?
    ( K_WITH ( nodeLabel | COMMA )+ )?                                             # testNodes
  | K_JOB word K_ON target ( COMMA target )*
    ( ( K_FROM | K_AT ) sum )? ( K_TO sum )?                                       # testJob
  | K_AT sum ( RANGE sum )? ( K_EVERY sum )? COLON testEvent                     # testAt
  | K_GAP target ( K_SOURCE wordPath )? K_FROM sum K_TO sum                          # testGap
  | K_EXPECT K_NO? K_VERDICT ( word target? )?
    ( LBRACE ( verdictClause | SEMICOLON )* RBRACE )?                              # testVerdict
  | K_EXPECT K_NO? wordPath signalPlace                                          # testExpect
  | K_ALLOW wordPath signalPlace                                                 # testAllow
  | K_STRICT                                                                     # testStrict
  | K_SHUFFLE INT                                                                # testShuffle
  ;
nodeLabel : dottedName ( STRING | INT ) ;
signalPlace : ( K_ON target )? ( K_AT sum ( PLUS_MINUS sum )? | K_BEFORE sum )? ;
testEvent
  : K_LOG target ( COMMA target )* ( STRING | RAW_STRING ) eventOption*
  | dottedName testItem* eventOption*
  ;
eventOption : REPEAT_COUNT ( K_EVERY sum )? | K_LATE sum ;
testItem : target | testNumber | RAW_STRING | listLiteral | K_TRUE | K_FALSE ;
testNumber : MINUS? ( ( INT | REAL ) testUnit? | QUANTITY | HEX | PERCENT | DURATION | DATE ) ;
testUnit : UNIT ( K_PER timeWord )? | RATE_UNIT | K_PER timeWord ;
target : ( wordPath | STRING ) ( LBRACKET INT RANGE INT RBRACKET )? ( SLASH targetPart )* ;
targetPart : INT | STRING | word ;
wordPath : word ( DOT identifier )* ;
verdictClause
  : K_TOP target clausePath? clauseP?
  | K_SUSPECT clauseTarget ( COMMA? clauseTarget )* clauseP?
  | K_NOT clauseTarget ( COMMA? clauseTarget )*
  | ( K_BECAUSE | K_SILENT ) clausePath ( COMMA? clausePath )*
  | K_NONE
  | K_UNDETERMINED
  | K_EXTERNAL clausePath clauseP?
  | K_GPU target
  ;
clauseP : K_P comparisonOp sum ;
clausePath : clauseWord ( DOT identifier )* ;
clauseTarget : ( clausePath | STRING ) ( LBRACKET INT RANGE INT RBRACKET )? ( SLASH targetPart )* ;

// ---------------------------------------------------------------- expressions
expr : K_NOT* comparison ( ( K_AND | K_OR ) K_NOT* comparison )* ;
comparison : sum comparisonTail? ;
comparisonTail
  : comparisonOp sum
  | K_NOT? K_IN sum ( RANGE sum )?
  | K_NOT? K_LIKE STRING
  | K_NOT? MATCHES_RE
  | ( K_ANY | K_ALL ) K_BITS LPAREN sum ( COMMA sum )* RPAREN
  | K_IS K_NOT? K_MISSING
  ;
comparisonOp : EQ | NE | LT | LE | GT | GE ;
sum : term ( arithmeticOp term )* ;
arithmeticOp : PIPE | AMP | PLUS | MINUS | STAR | SLASH | MODULO ;
term : MINUS* primary ;
primary
  : ( INT | REAL ) unit?
  | HEX
  | QUANTITY
  | DURATION
  | DATE
  | PERCENT ( K_OF primary )?
  | STRING
  | RAW_STRING
  | K_TRUE
  | K_FALSE
  | LPAREN expr RPAREN
  | listLiteral
  | K_LABEL dottedName
  | access
  ;
access : exprName ( DOT identifier )*
         ( ( QUESTION? callArguments | LBRACKET sum RBRACKET ) accessTail* )? ;
accessTail : DOT identifier | LBRACKET sum RBRACKET ;
callArguments : LPAREN ( callArgument ( COMMA callArgument )* )? RPAREN ;
callArgument : expr ( K_WHERE expr )? callOption* | callOption+ ;
callOption : optionName sum ;
optionName : K_HALF_LIFE | K_GAP | K_LAST | K_WITHIN | K_MIN | K_MAX | K_SLACK | K_TARGET | K_OVER
           | K_STALE_AFTER | K_EXACT | K_ALPHA | K_BY ;
listLiteral : LBRACKET ( listElement ( COMMA listElement )* COMMA? )? RBRACKET ;
listElement : sum ( RANGE sum | COLON sum )? ;
bareNumber : INT | REAL | PERCENT | exprName ( DOT identifier )* ;
unit : UNIT ( K_PER timeWord )? | RATE_UNIT | K_COUNT | K_PER timeWord ;
timeWord : K_SECOND | K_MINUTE | K_HOUR | K_DAY ;

// ---------------------------------------------------------------- names
// Every keyword is a name where only a name can stand. Three narrower sets keep lists of words
// apart from what follows them: exprName (start of an expression), word (test statements),
// clauseWord (clauses of `expect verdict`).
dottedName : identifier ( DOT identifier )* ;
identifier : IDENT | softWord | clauseKeyword | testKeyword | operatorWord | REPEAT_COUNT ;
exprName : IDENT | softWord | clauseKeyword | testKeyword | K_NONE | REPEAT_COUNT ;
word : IDENT | softWord | clauseKeyword | K_NONE ;
clauseWord : IDENT | softWord ;

operatorWord : K_AND | K_OR | K_NOT | K_IN | K_LIKE | K_IS | K_MATCHES | K_WHERE | K_THE | K_NONE
             | K_TRUE | K_FALSE ;
testKeyword : K_AT | K_EXPECT | K_ALLOW | K_STRICT | K_GAP | K_SHUFFLE | K_EVERY | K_LATE | K_ON
            | K_AS | K_WITH ;
clauseKeyword : K_TOP | K_SUSPECT | K_BECAUSE | K_SILENT | K_UNDETERMINED | K_EXTERNAL | K_GPU
              | K_P ;
softWord
  : K_PACK | K_REQUIRES | K_ENGINE | K_DSL | K_IMPORT | K_ONLY | K_CLOCK | K_LIMITS | K_PER
  | K_EXPORT | K_EVENT | K_PROFILE | K_LIST | K_MACRO | K_DECODER | K_SIGNAL | K_FEATURE | K_FAULT
  | K_CAUSES | K_MASKS | K_EXPLAINED | K_INCIDENT | K_RULE | K_TEST | K_OVERLAY | K_SUPPRESS
  | K_MAINTENANCE | K_COHORT | K_REPAIR | K_KEY | K_COUNTER | K_REDACT | K_DEDUP | K_EXTENDS | K_ABSTRACT | K_ENUM
  | K_FALLBACK | K_ADAPTIVE | K_PRIOR_SCALE | K_LABEL | K_COLUMN | K_PREFIX | K_LINE | K_FOLD
  | K_IGNORE | K_WITHIN | K_THEN | K_STRICTLY | K_ABSENT | K_FOR | K_UNLESS | K_BETWEEN | K_KEEP
  | K_EARLIEST | K_LATEST | K_ALL | K_ANY | K_BITS | K_MAX | K_MIN | K_AFTER | K_MATCH | K_SKIP
  | K_HOLDS | K_COUNT | K_DISTINCT | K_BURSTS | K_OF | K_GRADED | K_EXTRA | K_RISING
  | K_STEADY | K_VOTES | K_EACH | K_REARM | K_EXACT | K_LAST
  | K_WHEN | K_CLEAR | K_BELOW | K_ABOVE | K_NODATA | K_HOLD | K_INTERRUPT | K_PEERS | K_LEAST
  | K_EXCEPTIONS | K_LEAK | K_LEARN | K_WAS | K_RESET | K_HALF_LIFE | K_SLACK | K_TARGET | K_OVER
  | K_STALE_AFTER | K_ALPHA | K_PRIOR | K_SEVERITY | K_REMEDY | K_LAG | K_SCOPE | K_WEIGHT | K_BY
  | K_OPENS | K_SETTLE | K_MERGE | K_CONFIRM | K_UNEXPLAINED | K_VERDICT | K_ANNOTATE | K_ACTION
  | K_REPEAT | K_RESOLVE | K_SIGNALS | K_UNTIL | K_REASON | K_FROM | K_GRACE | K_EXTEND | K_SET
  | K_DISABLE | K_EXCEPT | K_ALIAS | K_KIND | K_LIMIT | K_MODE | K_SYNERGY | K_NODES | K_JOB | K_TO | K_LOG | K_SOURCE | K_NO
  | K_BEFORE | K_MISSING | K_SECOND | K_MINUTE | K_HOUR | K_DAY | UNIT
  ;
