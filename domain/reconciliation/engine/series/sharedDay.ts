/**
 * A day on which rates and counts are both explained: every billed dollar belongs to one finding, and what neither
 * explains is one rest.
 */
import { absPico, divideHalfEven, type Pico } from '../../../money.js';
import type { MeterDay } from '../causes/cause.js';
import { impactOf, type MeterImpact } from './dollars.js';
import type { JudgedDay } from './judge.js';

export interface SharedDay {
  /** The aspects as they were given, none with dollars of another. */
  readonly aspects: readonly JudgedDay[];
  /** The aspect with most of the rest, holding all of it. */
  readonly rest: JudgedDay;
}

export function shared(given: readonly JudgedDay[]): SharedDay {
  const aspects = billedOnce(oneOfAKind(given));
  const explained = new Set(aspects.flatMap(({ parts }) => parts.explained.map(({ meter }) => meter?.index)));
  const byMeter = new Map<MeterDay | null, MeterImpact>();
  for (const { parts } of aspects)
    for (const part of parts.unexplained) {
      const known = byMeter.get(part.meter);
      byMeter.set(part.meter, {
        ...part,
        ratePico: part.ratePico + (known?.ratePico ?? 0n),
        volumePico: part.volumePico + (known?.volumePico ?? 0n),
      });
    }
  // Beside an explanation the rest is billed what it is too much, out of what the explanation left as right.
  const beside = new Map<number | undefined, Pico>();
  const rests = [...byMeter.values()].map((part) => {
    if (!explained.has(part.meter?.index)) return part;
    const billedPico = aboveZero(part.ratePico + part.volumePico);
    beside.set(part.meter?.index, billedPico);
    return { ...part, billedPico };
  });
  const restOf = ({ parts }: JudgedDay) => absPico(impactOf(parts.unexplained));
  const [first, ...others] = aspects;
  if (!first) throw new RangeError('a day has an aspect');
  const most = others.reduce((best, one) => (restOf(one) > restOf(best) ? one : best), first);
  return {
    aspects: withoutRests(aspects, beside),
    rest: { ...most, parts: { ...most.parts, unexplained: rests } },
  };
}

const aboveZero = (value: Pico): Pico => (value > 0n ? value : 0n);

/** Takes what the rest of a meter is billed from the explanation that leaves most of the meter as right. */
function withoutRests(
  aspects: readonly JudgedDay[],
  beside: ReadonlyMap<number | undefined, Pico>,
): JudgedDay[] {
  const rightOf = (part: MeterImpact) => part.billedPico - part.ratePico - part.volumePico;
  const givers = new Map<number | undefined, MeterImpact>();
  for (const { parts } of aspects)
    for (const part of parts.explained) {
      const known = givers.get(part.meter?.index);
      if (!known || rightOf(part) > rightOf(known)) givers.set(part.meter?.index, part);
    }
  return aspects.map((one) => ({
    ...one,
    parts: {
      ...one.parts,
      explained: one.parts.explained.map((part) => {
        const taken = beside.get(part.meter?.index) ?? 0n;
        return taken > 0n && givers.get(part.meter?.index) === part
          ? { ...part, billedPico: part.billedPico - taken }
          : part;
      }),
    },
  }));
}

/** A day has one finding of a kind and direction: the smaller one of two is left to the rest. */
function oneOfAKind(aspects: readonly JudgedDay[]): JudgedDay[] {
  const sizeOf = ({ parts }: JudgedDay) => impactOf(parts.explained);
  const isSame = (a: JudgedDay, b: JudgedDay) =>
    a !== b && a.state.kind === b.state.kind && sizeOf(a) > 0n === sizeOf(b) > 0n;
  return aspects.map((one, at) => {
    const isLess = aspects.some(
      (other, beside) =>
        isSame(one, other) &&
        one.parts.explained.length > 0 &&
        other.parts.explained.length > 0 &&
        (absPico(sizeOf(other)) > absPico(sizeOf(one)) ||
          (absPico(sizeOf(other)) === absPico(sizeOf(one)) && beside < at)),
    );
    if (!isLess) return one;
    const { explained, unexplained } = one.parts;
    return { ...one, parts: { explained: [], unexplained: [...unexplained, ...explained] } };
  });
}

/**
 * Of a meter whose rate and count are both explained, the units too many are billed for nothing, and the rest of the amount at
 * another rate. Units too many cost no more than they were charged: at a lower rate than agreed, that rate.
 */
function billedOnce(aspects: readonly JudgedDay[]): JudgedDay[] {
  const counts = aspects.find(({ aspect }) => aspect === 'counts');
  const rates = aspects.find(({ aspect }) => aspect === 'rates');
  if (!counts || !rates) return [...aspects];
  const rateOf = new Map(rates.parts.explained.map((part) => [part.meter?.index, part.ratePico]));
  const taken = new Map<number | undefined, { units: Pico; less: Pico }>();
  for (const { meter, billedPico, ratePico, volumePico } of counts.parts.explained) {
    const rate = rateOf.get(meter?.index);
    if (rate === undefined) continue;
    const isCheaper = rate < 0n && volumePico > 0n && billedPico > 0n;
    const volume = isCheaper ? divideHalfEven(volumePico * billedPico, billedPico - rate) : volumePico;
    taken.set(meter?.index, { units: aboveZero(ratePico + volume), less: volumePico - volume });
  }
  if (taken.size === 0) return [...aspects];
  return aspects.map((one) => ({
    ...one,
    parts: {
      ...one.parts,
      explained: one.parts.explained.map((part) => {
        const own = taken.get(part.meter?.index);
        if (!own || (one !== counts && one !== rates)) return part;
        if (one === counts) return { ...part, billedPico: own.units, volumePico: part.volumePico - own.less };
        return { ...part, billedPico: part.billedPico - own.units, ratePico: part.ratePico + own.less };
      }),
    },
  }));
}
