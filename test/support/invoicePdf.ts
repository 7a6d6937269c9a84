import PDFDocument from 'pdfkit';

/** A line of a test's invoice; amounts as they are printed, without the currency sign. */
export interface PrintedLine {
  description: string;
  quantity: string;
  unitPrice: string;
  amount: string;
}

export interface PrintedInvoice {
  number: string;
  title: string;
  lines: readonly PrintedLine[];
  total: string;
  /** Sentence below the sums. */
  footer: string;
}

const LINE: PrintedLine = {
  description: 'Claude Sonnet 4.5 input tokens',
  quantity: '1,000',
  unitPrice: '$0.01',
  amount: '$10.00',
};

/** No line begins below: the sums have room after it. */
const PAGE_END = 640;

/** An invoice in Stripe's layout, with a layer of text. Another footer makes other bytes. */
export function invoicePdf(printed: Partial<PrintedInvoice> = {}): Promise<Buffer> {
  const { number, title, lines, total, footer } = {
    number: 'TEST-0001',
    title: 'Invoice',
    lines: [
      LINE,
      { ...LINE, description: 'Claude Sonnet 4.5 output tokens', quantity: '2,000', amount: '$20.00' },
    ],
    total: '$30.00',
    footer: 'Thank you for your business.',
    ...printed,
  };
  const document = new PDFDocument({ size: 'A4', margin: 40 });
  const done = bytesOf(document);
  document.fontSize(20).text(title, 40, 40);
  document.fontSize(10);
  const put = (text: string, x: number, y: number) => document.text(text, x, y, { lineBreak: false });
  const right = (text: string, edge: number, y: number) => put(text, edge - document.widthOfString(text), y);
  put('Invoice number', 40, 80);
  put(number, 140, 80);
  put('Date of issue', 40, 95);
  put('March 1, 2026', 140, 95);
  put('Date due', 40, 110);
  put('March 31, 2026', 140, 110);
  put('Anthropic, PBC', 40, 140);
  put('548 Market Street, San Francisco', 40, 155);
  put('Bill to', 300, 140);
  put('Demo Labs', 300, 155);
  put(`${total} USD due March 31, 2026`, 40, 200);
  const head = (y: number) => {
    put('Description', 40, y);
    right('Qty', 380, y);
    right('Unit price', 460, y);
    right('Amount', 550, y);
    return y + 20;
  };
  let y = head(240);
  for (const line of lines) {
    if (y > PAGE_END) {
      document.addPage();
      y = head(40);
    }
    put(line.description, 40, y);
    right(line.quantity, 380, y);
    right(line.unitPrice, 460, y);
    right(line.amount, 550, y);
    put('Feb 1 – Feb 28, 2026', 40, y + 13);
    y += 32;
  }
  for (const name of ['Subtotal', 'Total', 'Amount due']) {
    put(name, 380, y);
    right(name === 'Amount due' ? `${total} USD` : total, 550, y);
    y += 16;
  }
  put(footer, 40, y + 40);
  document.end();
  return done;
}

function bytesOf(document: PDFKit.PDFDocument): Promise<Buffer> {
  const parts: Buffer[] = [];
  return new Promise((resolve, reject) => {
    document.on('data', (part: Buffer) => parts.push(part));
    document.on('end', () => resolve(Buffer.concat(parts)));
    document.on('error', reject);
  });
}
