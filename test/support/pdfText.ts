import { getDocument } from 'pdfjs-dist/legacy/build/pdf.mjs';

/** A line of a page: the text at one height, in the order of the text layer. */
export interface PdfLine {
  text: string;
  /** Size of its largest letters, points. */
  size: number;
}

export interface PdfText {
  pages: { lines: PdfLine[] }[];
  /** Every character of the text layer in order, as copying returns it, without white space. */
  joined: string;
  /** With one line of text for each line of a page. */
  text: string;
}

interface TextItem {
  str: string;
  height: number;
  transform: number[];
}

/** The text layer of a PDF document. */
export async function pdfTextOf(bytes: Uint8Array): Promise<PdfText> {
  const document = await getDocument({ data: new Uint8Array(bytes), verbosity: 0 }).promise;
  const pages: PdfText['pages'] = [];
  let joined = '';
  for (let number = 1; number <= document.numPages; number += 1) {
    const page = await document.getPage(number);
    const items = (await page.getTextContent()).items.filter(
      (item): item is TextItem & typeof item => 'str' in item,
    );
    joined += items.map(({ str }) => str).join('');
    pages.push({ lines: linesOf(items) });
  }
  return {
    pages,
    joined: joined.replace(/\s+/g, ''),
    text: pages.flatMap(({ lines }) => lines.map(({ text }) => text)).join('\n'),
  };
}

/** From the top of the page to its bottom. */
function linesOf(items: readonly TextItem[]): PdfLine[] {
  const lines = new Map<number, { items: TextItem[] }>();
  for (const item of items) {
    const y = Math.round(item.transform[5] ?? 0);
    const line = lines.get(y) ?? lines.get(y - 1) ?? lines.get(y + 1) ?? { items: [] };
    line.items.push(item);
    lines.set(y, line);
  }
  return [...new Set([...lines].sort(([a], [b]) => b - a).map(([, line]) => line))]
    .map(({ items: of }) => ({
      text: [...of]
        .sort((a, b) => (a.transform[4] ?? 0) - (b.transform[4] ?? 0))
        .map(({ str }) => str)
        .join('')
        .trim(),
      size: Math.max(...of.map(({ height }) => height)),
    }))
    .filter(({ text }) => text !== '');
}
