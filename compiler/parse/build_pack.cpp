// Builder: pack head, imports, event kinds, profiles, lists, macros, decoders.
#include <utility>

#include "compiler/parse/builder.h"

namespace reflex::parse {

void Builder::pack(Parser::PackDeclContext* ctx) {
  if (module_.head.has_value()) {
    auto& d =
        sink_.report(diag::Id::kPackHeadPlace, span(ctx), "a second pack statement in one file");
    d.notes.push_back({module_.head->span, "the first one is here"});
    d.help = "put each pack into a folder or a file of its own";
    return;
  }
  if (!module_.decls.empty()) {
    auto& d = sink_.report(diag::Id::kPackHeadPlace, span(ctx),
                           "the pack statement must stand before the declarations");
    d.notes.push_back({module_.decls.front().span, "the first declaration is here"});
  }
  ast::PackHead head;
  head.name = name(ctx->dottedName());
  head.version = text(ctx->version());
  head.engine_range = ctx->versionRange() != nullptr ? text(ctx->versionRange()) : "";
  if (ctx->INT() != nullptr) {
    head.dsl = integer(ctx->INT()->getSymbol());
  }
  head.span = span(ctx);
  module_.head = std::move(head);
}

bool Builder::needs_head(Rule* ctx, std::string_view what) {
  if (module_.head.has_value()) {
    return true;
  }
  sink_
      .report(diag::Id::kImportWithoutHead, span(ctx),
              "'" + std::string(what) + "' needs a pack statement before it in this file")
      .help = "move it to the file that holds the pack statement (pack.rfx)";
  return false;
}

void Builder::import(Parser::ImportDeclContext* ctx) {
  if (!needs_head(ctx, "import")) {
    return;
  }
  ast::Import import;
  const auto dotted = ctx->dottedName();
  import.pack = name(dotted[0]);
  import.range = ctx->versionRange() != nullptr ? text(ctx->versionRange()) : "";
  if (ctx->identifier() != nullptr) {
    import.as = name(ctx->identifier());
  }
  for (size_t i = 1; i < dotted.size(); ++i) {
    import.only.push_back(name(dotted[i]));
  }
  import.span = span(ctx);
  module_.head->imports.push_back(std::move(import));
}

std::vector<ast::Setting> Builder::settings(Parser::SettingsContext* ctx) {
  std::vector<ast::Setting> result;
  for (auto* entry : ctx->setting()) {
    const auto words = entry->identifier();
    ast::Setting setting{name(words[0]), sum(entry->sum()), ""};
    if (words.size() > 1) {
      setting.suffix = "per " + text(words[1]);
    }
    result.push_back(std::move(setting));
  }
  return result;
}

std::vector<ast::Name> Builder::keys(Parser::KeysContext* ctx) const {
  return names(ctx->identifier());
}

ast::TypeRef Builder::type(Parser::TypeRefContext* ctx) {
  ast::TypeRef t;
  t.span = span(ctx);
  t.optional = ctx->QUESTION() != nullptr;
  if (ctx->K_ENUM() != nullptr) {
    t.name = "enum";
    t.enum_words = names(ctx->identifier());
    return t;
  }
  t.name = ctx->dottedName() != nullptr ? text(ctx->dottedName()) : token_text(ctx->RATE_UNIT());
  bool bound_given = false;
  for (auto* arg : ctx->typeArg()) {
    if (arg->INT() != nullptr) {
      const int64_t bound = integer(arg->INT()->getSymbol());
      if (bound_given || bound < 1 || bound > UINT32_MAX) {
        error(span(arg), "an array has one bound of at least 1", "write array<u32, 5>");
      }
      bound_given = true;
      t.bound = static_cast<uint32_t>(bound);
    } else if (t.element == nullptr) {
      t.element = std::make_unique<ast::TypeRef>(type(arg->typeRef()));
    } else {
      t.more.push_back(type(arg->typeRef()));
    }
  }
  return t;
}

ast::EventDecl Builder::event(Parser::EventDeclContext* ctx) {
  ast::EventDecl e;
  const auto dotted = ctx->dottedName();
  e.name = name(dotted[0]);
  e.abstract_kind = !ctx->K_ABSTRACT().empty();
  if (dotted.size() > 1) {
    e.extends = name(dotted[1]);
  }
  if (dotted.size() > 2) {
    error(span(dotted[2]), "an event kind extends one kind", "remove one 'extends'");
  }
  for (auto* given : ctx->fieldDecl()) {
    ast::FieldDecl field;
    field.key = !given->K_KEY().empty();
    field.counter = !given->K_COUNTER().empty();
    field.redact = given->K_REDACT() != nullptr;
    field.name = name(given->identifier());
    field.type = type(given->typeRef());
    field.span = span(given);
    e.fields.push_back(std::move(field));
  }
  if (auto* dedup = ctx->dedup()) {
    e.dedup_fields = names(dedup->identifier());
    e.dedup_for = sum(dedup->sum());
  }
  return e;
}

ast::ProfileParam Builder::profile_param(Parser::ProfileItemContext* ctx) {
  ast::ProfileParam p;
  p.name = name(ctx->identifier());
  p.adaptive = ctx->K_ADAPTIVE() != nullptr;
  p.span = span(ctx);
  if (ctx->typeRef() != nullptr) {
    p.type = type(ctx->typeRef());
  }
  if (ctx->settings() != nullptr) {
    p.adaptive_settings = settings(ctx->settings());
  }
  if (ctx->expr() != nullptr) {
    p.value = expr(ctx->expr());
  }
  const auto bounds = ctx->sum();
  if (bounds.size() == 2) {
    auto range = node(ast::ExprKind::kRange, source::cover(span(bounds[0]), span(bounds[1])));
    range->args.push_back(sum(bounds[0]));
    range->args.push_back(sum(bounds[1]));
    p.within = finish(std::move(range));
  }
  return p;
}

ast::ProfileDecl Builder::profile(Parser::ProfileDeclContext* ctx) {
  ast::ProfileDecl p;
  p.name = name(ctx->dottedName());
  for (auto* option : ctx->profileOption()) {
    if (option->K_EXTENDS() != nullptr) {
      once(!p.extends.empty(), option, "extends");
      p.extends = name(option->dottedName());
    } else if (option->K_MATCHES() != nullptr) {
      once(p.matches != nullptr, option, "matches");
      p.matches = expr(option->expr());
    } else if (option->K_ABSTRACT() != nullptr) {
      p.abstract_profile = true;
    } else {
      p.fallback = true;
    }
  }
  for (auto* item : ctx->profileItem()) {
    if (item->K_PRIOR_SCALE() != nullptr) {
      p.prior_scales.push_back({name(item->dottedName()), sum(item->sum(0))});
    } else {
      p.params.push_back(profile_param(item));
    }
  }
  return p;
}

ast::ListDecl Builder::list_decl(Parser::ListDeclContext* ctx) {
  ast::ListDecl l;
  l.name = name(ctx->dottedName());
  if (ctx->typeRef() != nullptr) {
    l.type = type(ctx->typeRef());
  }
  if (ctx->listLiteral() != nullptr) {
    l.value = list(ctx->listLiteral());
  } else {
    l.from_file = string_value(ctx->STRING()->getSymbol());
    if (ctx->INT() != nullptr) {
      l.column = integer(ctx->INT()->getSymbol());
    }
  }
  return l;
}

ast::MacroDecl Builder::macro(Parser::MacroDeclContext* ctx) {
  ast::MacroDecl m;
  m.name = name(ctx->identifier());
  for (auto* given : ctx->macroParam()) {
    ast::MacroDecl::Param param;
    param.name = name(given->identifier());
    if (given->dottedName() != nullptr) {
      param.type = name(given->dottedName());
    }
    m.params.push_back(std::move(param));
  }
  m.body = expr(ctx->expr());
  return m;
}

ast::DecoderDecl::Assign Builder::assignment(Parser::AssignmentContext* ctx) {
  return {name(ctx->identifier()), expr(ctx->expr())};
}

ast::DecoderDecl Builder::decoder(Parser::DecoderDeclContext* ctx) {
  ast::DecoderDecl d;
  d.name = name(ctx->dottedName());
  if (ctx->identifier() != nullptr) {
    d.input = name(ctx->identifier());
  }
  for (auto* item : ctx->decoderItem()) {
    if (item->K_PREFIX() != nullptr) {
      once(!d.prefix.empty(), item, "prefix");
      d.prefix = text(item->identifier());
      continue;
    }
    ast::DecoderDecl::Line line;
    antlr4::Token* pattern = item->LINE_RE()->getSymbol();
    const source::Span at = tokens_.span(pattern);
    const std::string_view raw = tokens_.text(pattern);
    const size_t slash = raw.find('/');
    line.regex_span = {at.file, at.begin + static_cast<uint32_t>(slash), at.end};
    line.regex = regex_text(raw);
    line.fold = item->INT() != nullptr ? integer(item->INT()->getSymbol()) : 1;
    line.ignore = item->K_IGNORE() != nullptr;
    if (!line.ignore) {
      line.kind = name(item->dottedName());
    }
    for (auto* given : item->assignment()) {
      line.assigns.push_back(assignment(given));
    }
    line.span = span(item);
    d.lines.push_back(std::move(line));
  }
  return d;
}

}  // namespace reflex::parse
