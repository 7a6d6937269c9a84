import { microsOfDay } from '../period.js';
import type { Provider } from '../providers.js';
import type { PriceBook, PriceState } from './priceBook.js';
import type {
  EnteredModel,
  PriceAgreement,
  PricedModel,
  PriceVersion,
  RecordedPriceModel,
} from './pricedModel.js';
import {
  ALL_MODELS,
  applyTerms,
  givesRate,
  type PriceStatement,
  type StatementKind,
} from './priceStatement.js';
import { cardsOf, type PeriodCards } from './rateCards.js';

/** The meaning of a statement's model. Statements that cover less take precedence. */
export type Coverage = 'all' | 'family' | 'model' | 'new';
const SPECIFICITY: Record<Coverage, number> = { all: 0, family: 1, model: 2, new: 2 };

interface Covering {
  readonly statement: PriceStatement;
  readonly specificity: number;
}

/**
 * For each model and day one statement applies: model before family before all, then the later one. `list` is
 * passed through.
 */
export function layBook(
  base: PriceBook,
  statements: readonly PriceStatement[],
  state: PriceState,
  list?: PriceBook,
): PriceBook {
  const covering = new Map<string, { model: EnteredModel; by: Covering[] }>();
  const cover = (model: EnteredModel, statement: PriceStatement, coverage: Coverage): void => {
    const key = `${model.entry.provider}\n${model.entry.model}`;
    const found = covering.get(key) ?? { model, by: [] };
    found.by.push({ statement, specificity: SPECIFICITY[coverage] });
    covering.set(key, found);
  };
  const made = new Map<string, EnteredModel>();
  // Statements that create entries come first, so that statements for all models find them.
  const last = (statement: PriceStatement) => Number(statement.model === ALL_MODELS);
  for (const statement of [...statements].sort((a, b) => last(a) - last(b) || a.order - b.order)) {
    const { coverage, models } = coveredBy(base, statement);
    if (coverage === 'new') cover(newModel(made, statement), statement, coverage);
    for (const model of models) cover(model, statement, coverage);
    if (coverage === 'all')
      for (const model of made.values())
        if (model.entry.provider === statement.provider) cover(model, statement, coverage);
  }
  const changed = [...covering.values()].map(({ model, by }) => ({
    entry: model.entry,
    periods: layPeriods(model, by),
  }));
  return base.with(
    // A new entry without a price would only make its family ambiguous.
    changed.filter(({ entry, periods }) => periods.length > 0 || !made.has(newKey(entry))),
    state,
    list,
  );
}

/** The models that a statement covers in the book below it. */
export function coveredBy(
  base: PriceBook,
  statement: { provider: Provider; model: string; kind: StatementKind },
): { coverage: Coverage; models: readonly EnteredModel[] } {
  const { provider, model } = statement;
  if (model === ALL_MODELS) return { coverage: 'all', models: base.entriesOf(provider) };
  const named = base.entryNamed(provider, model);
  if (named) return { coverage: 'model', models: [named] };
  // A collection lists ids only; people also name families.
  if (statement.kind === 'import') return { coverage: 'new', models: [] };
  const family = base.entriesOf(provider).filter(({ entry }) => entry.canonicalFamily === model);
  return family.length > 0 ? { coverage: 'family', models: family } : { coverage: 'new', models: [] };
}

function newKey({ provider, model }: { provider: string; model: string }): string {
  return `${provider}\n${model.toLowerCase()}`;
}

function newModel(made: Map<string, EnteredModel>, statement: PriceStatement): EnteredModel {
  const key = newKey(statement);
  const model = made.get(key) ?? { entry: statement.newEntry ?? entryOfId(statement), periods: [] };
  made.set(key, model);
  return model;
}

/** A new entry that consists of its id only. */
function entryOfId({ provider, model, fromDay, recordedAtMicros }: PriceStatement): RecordedPriceModel {
  const lower = model.toLowerCase();
  return {
    provider,
    model,
    canonicalFamily: lower,
    aliases: lower === model ? [] : [lower],
    mode: 'chat',
    firstParty: false,
    contextWindow: null,
    agreement: 'single_source',
    facts: {
      asOf: fromDay,
      dissent: [],
      conflicts: [],
      notes: [],
      regionalMultipliers: {},
      variants: {},
      sources: {},
    },
    updatedAtMicros: recordedAtMicros,
  };
}

/** Texts that sort before and after every day. */
const BEGINNING = '';
const END = '~';

interface Piece {
  from: string;
  to: string;
  base: PricedModel | null;
  statement: PriceStatement | null;
}

/** An entry's periods under the statements that cover it, split at each start and end. */
function layPeriods({ entry, periods }: EnteredModel, by: readonly Covering[]): PricedModel[] {
  const days = new Set([BEGINNING, END]);
  for (const { version } of periods) {
    days.add(version.effectiveFrom ?? BEGINNING);
    days.add(version.effectiveTo ?? END);
  }
  for (const { statement } of by) {
    days.add(statement.fromDay);
    days.add(statement.toDay ?? END);
  }
  const cuts = [...days].sort();
  const placeOf = new Map(cuts.map((day, index) => [day, index]));
  const bases = new Stretch<PricedModel>(cuts.length);
  for (const period of periods) {
    const { effectiveFrom, effectiveTo } = period.version;
    bases.fill(placeOf.get(effectiveFrom ?? BEGINNING), placeOf.get(effectiveTo ?? END), period);
  }
  const statements = new Stretch<PriceStatement>(cuts.length);
  const ranked = [...by].sort(
    (a, b) => b.specificity - a.specificity || b.statement.order - a.statement.order,
  );
  for (const { statement } of ranked)
    statements.fill(placeOf.get(statement.fromDay), placeOf.get(statement.toDay ?? END), statement);
  const pieces: Piece[] = [];
  for (let index = 0; index + 1 < cuts.length; index += 1) {
    const [from = BEGINNING, to = END] = cuts.slice(index, index + 2);
    const [base, statement] = [bases.at(index), statements.at(index)];
    const before = pieces.at(-1);
    if (before && before.base === base && before.statement === statement) before.to = to;
    else pieces.push({ from, to, base, statement });
  }
  return pieces.flatMap((piece) => pricePiece(entry, piece) ?? []);
}

/** A row of places that are filled once: the first value stays. The cost is proportional to the places still free. */
class Stretch<T> {
  readonly #values: (T | null)[];
  /** For each place the next one that may be free. */
  readonly #next: number[];

  constructor(length: number) {
    this.#values = new Array<T | null>(length).fill(null);
    this.#next = Array.from({ length: length + 1 }, (_, index) => index);
  }

  /** Fills the free places from `from` (inclusive) to `to` (exclusive). */
  fill(from: number | undefined, to: number | undefined, value: T): void {
    if (from === undefined || to === undefined) return;
    for (let place = this.#freeFrom(from); place < to; place = this.#freeFrom(place)) {
      this.#values[place] = value;
      this.#next[place] = place + 1;
    }
  }

  at(place: number): T | null {
    return this.#values[place] ?? null;
  }

  #freeFrom(place: number): number {
    let free = place;
    while (this.#next[free] !== free) free = this.#next[free] as number;
    // Path compression for later searches.
    for (let step = place; step !== free; ) {
      const after = this.#next[step] as number;
      this.#next[step] = free;
      step = after;
    }
    return free;
  }
}

function pricePiece(
  entry: RecordedPriceModel,
  { from, to, base, statement }: Piece,
): PricedModel | undefined {
  const effectiveFrom = from === BEGINNING ? null : from;
  const effectiveTo = to === END ? null : to;
  if (!statement) return base ? cutTo(base, effectiveFrom, effectiveTo) : undefined;
  const prices = applyTerms(statement.terms, base?.version ?? null);
  if (!prices) return undefined;
  const version = {
    ...prices,
    id: statement.id,
    provider: entry.provider,
    model: entry.model,
    effectiveFrom,
    effectiveTo,
    source: statement.sourceName,
    recordedAtMicros: statement.recordedAtMicros,
  };
  return priceUnder(entry, version, statement, base);
}

/** A price under a statement. Its rates are computed on request, since most of a book's are never used. */
function priceUnder(
  entry: RecordedPriceModel,
  version: PriceVersion,
  statement: PriceStatement,
  base: PricedModel | null,
): PricedModel {
  let cards: PeriodCards | undefined;
  return {
    entry,
    version,
    matchedBy: 'exact',
    get cards() {
      cards ??= cardsOf(entry.provider, version);
      return cards;
    },
    fromMicros: version.effectiveFrom === null ? null : microsOfDay(version.effectiveFrom),
    toMicros: version.effectiveTo === null ? null : microsOfDay(version.effectiveTo),
    agreement: agreementOf(statement),
    disputed: isDisputedUnder(statement, base),
    laid: { statement, base },
  };
}

function cutTo(base: PricedModel, effectiveFrom: string | null, effectiveTo: string | null): PricedModel {
  const { version } = base;
  if (version.effectiveFrom === effectiveFrom && version.effectiveTo === effectiveTo) return base;
  return {
    ...base,
    version: { ...version, effectiveFrom, effectiveTo },
    fromMicros: effectiveFrom === null ? null : microsOfDay(effectiveFrom),
    toMicros: effectiveTo === null ? null : microsOfDay(effectiveTo),
  };
}

function agreementOf({ kind }: PriceStatement): PriceAgreement {
  return kind === 'import' ? 'single_source' : kind;
}

/** A statement with both main rates ends the disagreement of the list price's sources. */
function isDisputedUnder({ terms }: PriceStatement, base: PricedModel | null): boolean {
  if (givesRate(terms, 'input') && givesRate(terms, 'output')) return false;
  return base?.disputed ?? false;
}
