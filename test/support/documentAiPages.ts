import type { InvoiceExtraction, PageWords, Word } from '../../domain/invoices/pageWords.js';

const vertices = (page: PageWords, { x, y, width, height }: Omit<Word, 'text' | 'confidence'>) => ({
  normalizedVertices: [
    { x: x / page.width, y: y / page.height },
    { x: (x + width) / page.width, y: y / page.height },
    { x: (x + width) / page.width, y: (y + height) / page.height },
    { x: x / page.width, y: (y + height) / page.height },
  ],
});

/** Words as Document AI answers with them, of those pages and words that `isShown` names. */
export function documentAiPages(
  { pages }: InvoiceExtraction,
  isShown: (word: Word, page: number) => boolean = () => true,
): { text: string; pages: object[] } {
  let text = '';
  let length = 0;
  const shown = pages.map((page) => ({
    pageNumber: page.page,
    dimension: { width: page.width * 2, height: page.height * 2, unit: 'pixels' },
    tokens: page.words
      .filter((word) => isShown(word, page.page))
      .map((word) => {
        const startIndex = String(length);
        text += `${word.text}\n`;
        // Code points, as Document AI counts.
        length += [...word.text].length + 1;
        const textAnchor = { textSegments: [{ startIndex, endIndex: String(length) }] };
        return { layout: { textAnchor, confidence: 0.875, boundingPoly: vertices(page, word) } };
      }),
  }));
  return { text, pages: shown };
}

/** One of Document AI's own fields, at the place of the first word that is printed so. */
export function documentAiEntity(
  { pages }: InvoiceExtraction,
  type: string,
  mentionText: string,
  properties: object[] = [],
): object {
  const [first = ''] = mentionText.split(' ');
  const page = pages.find(({ words }) => words.some(({ text }) => text === first));
  const word = page?.words.find(({ text }) => text === first);
  const pageRefs = page && word ? [{ page: String(page.page - 1), boundingPoly: vertices(page, word) }] : [];
  return { type, mentionText, confidence: 0.9375, pageAnchor: { pageRefs }, properties };
}
