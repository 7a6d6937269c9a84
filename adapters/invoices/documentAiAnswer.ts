import type { Box, ExtractedEntity, PageWords, Word } from '../../domain/invoices/pageWords.js';

/** The used fields of Document AI's `Document`, over gRPC, REST and files in a bucket. */
export interface DocumentAiDocument {
  text?: string | null;
  pages?: readonly DocumentAiPage[] | null;
  entities?: readonly DocumentAiEntity[] | null;
}

interface DocumentAiPage {
  pageNumber?: number | null;
  dimension?: { width?: number | null; height?: number | null } | null;
  tokens?: readonly { layout?: DocumentAiLayout | null }[] | null;
}

interface DocumentAiLayout {
  textAnchor?: DocumentAiAnchor | null;
  confidence?: number | null;
  boundingPoly?: DocumentAiPolygon | null;
}

interface DocumentAiAnchor {
  textSegments?: readonly { startIndex?: unknown; endIndex?: unknown }[] | null;
}

interface DocumentAiPolygon {
  vertices?: readonly { x?: number | null; y?: number | null }[] | null;
  normalizedVertices?: readonly { x?: number | null; y?: number | null }[] | null;
}

interface DocumentAiEntity {
  type?: string | null;
  mentionText?: string | null;
  confidence?: number | null;
  pageAnchor?: {
    pageRefs?: readonly { page?: unknown; boundingPoly?: DocumentAiPolygon | null }[] | null;
  } | null;
  normalizedValue?: {
    text?: string | null;
    moneyValue?: { units?: unknown; nanos?: number | null } | null;
    dateValue?: { year?: number | null; month?: number | null; day?: number | null } | null;
  } | null;
  properties?: readonly DocumentAiEntity[] | null;
}

/** A page of the PDF that was sent. */
export interface SentPage {
  page: number;
  /** Points. */
  width: number;
  height: number;
}

/** The answer deviates from Document AI's documentation, or lacks pages. */
export class UnreadableAnswer extends Error {}

/**
 * Words and entities of one answer.
 * @param sent The pages that the sent PDF consists of, in its order.
 * @throws UnreadableAnswer unless the answer has exactly these pages, each with its words.
 */
export function readAnswer(
  document: DocumentAiDocument | null | undefined,
  sent: readonly SentPage[],
): { pages: PageWords[]; entities: ExtractedEntity[] } {
  if (!document || typeof document.text !== 'string' || !Array.isArray(document.pages))
    throw new UnreadableAnswer('the answer has no text or no pages');
  const numbers = document.pages
    .map(({ pageNumber }) => Number(pageNumber))
    .sort((one, other) => one - other);
  if (numbers.length !== sent.length || numbers.some((number, at) => number !== at + 1))
    throw new UnreadableAnswer(`the answer has the pages ${numbers.join(', ') || 'none'} of ${sent.length}`);
  // Indices count code points, not units of UTF-16.
  const characters = [...document.text];
  const placed = document.pages.map((page) => ({ page, at: sent[Number(page.pageNumber) - 1] as SentPage }));
  const pages = placed.map(({ page, at }) => readPage(page, at, characters));
  const dimensions = placed.map(({ page, at }) => ({ page, at }));
  const entities = (document.entities ?? []).map((entity) => readEntity(entity, dimensions));
  return { pages, entities };
}

function readPage(page: DocumentAiPage, at: SentPage, characters: readonly string[]): PageWords {
  const { width = 0, height = 0 } = page.dimension ?? {};
  if (!width || !height) throw new UnreadableAnswer(`page ${at.page} has no size`);
  if (page.tokens !== undefined && page.tokens !== null && !Array.isArray(page.tokens))
    throw new UnreadableAnswer(`page ${at.page} has no list of words`);
  const words = (page.tokens ?? []).flatMap(({ layout }): Word[] => {
    const text = textOf(layout?.textAnchor, characters);
    const box = boxOf(layout?.boundingPoly, page, at);
    if (text === undefined || box === undefined)
      throw new UnreadableAnswer(`a word of page ${at.page} has no text or no place`);
    const { page: _, ...place } = box;
    return text === '' ? [] : [{ text, ...place, confidence: layout?.confidence ?? 0 }];
  });
  const size = uprightSize(page, at);
  return { page: at.page, ...size, engine: 'document_ai', words };
}

/** Document AI turns pages upright; the sides then change places. */
function uprightSize(page: DocumentAiPage, at: SentPage): { width: number; height: number } {
  const isWide = (page.dimension?.width ?? 0) > (page.dimension?.height ?? 0);
  return isWide === at.width > at.height
    ? { width: at.width, height: at.height }
    : { width: at.height, height: at.width };
}

function textOf(
  anchor: DocumentAiAnchor | null | undefined,
  characters: readonly string[],
): string | undefined {
  const segments = anchor?.textSegments;
  if (!segments || segments.length === 0) return undefined;
  let text = '';
  for (const { startIndex, endIndex } of segments) {
    const start = Number(startIndex ?? 0);
    const end = Number(endIndex ?? 0);
    if (!(start >= 0 && end >= start && end <= characters.length)) return undefined;
    text += characters.slice(start, end).join('');
  }
  return text.trim();
}

function boxOf(
  polygon: DocumentAiPolygon | null | undefined,
  page: DocumentAiPage,
  at: SentPage,
): Box | undefined {
  const { width, height } = uprightSize(page, at);
  const normalized = polygon?.normalizedVertices ?? [];
  const points =
    normalized.length > 0
      ? normalized.map(({ x, y }) => ({ x: (x ?? 0) * width, y: (y ?? 0) * height }))
      : (polygon?.vertices ?? []).map(({ x, y }) => ({
          x: ((x ?? 0) * width) / (page.dimension?.width || 1),
          y: ((y ?? 0) * height) / (page.dimension?.height || 1),
        }));
  if (points.length === 0) return undefined;
  const left = Math.min(...points.map(({ x }) => x));
  const top = Math.min(...points.map(({ y }) => y));
  return {
    page: at.page,
    x: left,
    y: top,
    width: Math.max(...points.map(({ x }) => x)) - left,
    height: Math.max(...points.map(({ y }) => y)) - top,
  };
}

function readEntity(
  entity: DocumentAiEntity,
  pages: readonly { page: DocumentAiPage; at: SentPage }[],
): ExtractedEntity {
  if (!entity.type) throw new UnreadableAnswer('an entity has no type');
  const [ref] = entity.pageAnchor?.pageRefs ?? [];
  // The index of the page, from 0; the first is left out on the wire.
  const place = ref && pages.find(({ page }) => Number(page.pageNumber) === Number(ref.page ?? 0) + 1);
  return {
    type: entity.type,
    text: entity.mentionText ?? '',
    normalized: normalizedOf(entity.normalizedValue),
    confidence: entity.confidence ?? 0,
    box: (place && boxOf(ref.boundingPoly, place.page, place.at)) ?? null,
    properties: (entity.properties ?? []).map((property) => readEntity(property, pages)),
  };
}

function normalizedOf(value: DocumentAiEntity['normalizedValue']): string | null {
  const { moneyValue, dateValue, text } = value ?? {};
  if (moneyValue) return exactMoney(String(moneyValue.units ?? '0'), moneyValue.nanos ?? 0);
  if (dateValue?.year && dateValue.month && dateValue.day) {
    const twoDigits = (number: number) => String(number).padStart(2, '0');
    return `${String(dateValue.year).padStart(4, '0')}-${twoDigits(dateValue.month)}-${twoDigits(dateValue.day)}`;
  }
  return text || null;
}

const NANO_DIGITS = 9;

/** Both parts have the sign of the amount. */
export function exactMoney(units: string, nanos: number): string {
  const total = BigInt(units) * 10n ** BigInt(NANO_DIGITS) + BigInt(nanos);
  const digits = String(total < 0n ? -total : total).padStart(NANO_DIGITS + 1, '0');
  const fraction = digits.slice(-NANO_DIGITS).replace(/0+$/, '');
  return `${total < 0n ? '-' : ''}${digits.slice(0, -NANO_DIGITS)}${fraction === '' ? '' : `.${fraction}`}`;
}
