import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { type Canvas, createCanvas } from '@napi-rs/canvas';
import { getDocument } from 'pdfjs-dist/legacy/build/pdf.mjs';

const PDFJS = dirname(createRequire(import.meta.url).resolve('pdfjs-dist/package.json'));
const POINTS_PER_INCH = 72;

export interface RasterPage {
  canvas: Canvas;
  /** Points. */
  width: number;
  height: number;
}

/** Draws the pages of a PDF one after the other. */
export async function* rasterPages(pdf: Uint8Array, dpi: number): AsyncIterable<RasterPage> {
  const loading = getDocument({
    data: new Uint8Array(pdf),
    standardFontDataUrl: join(PDFJS, 'standard_fonts/'),
    cMapUrl: join(PDFJS, 'cmaps/'),
    cMapPacked: true,
    useSystemFonts: false,
    verbosity: 0,
  });
  const document = await loading.promise;
  try {
    for (let number = 1; number <= document.numPages; number += 1) {
      const page = await document.getPage(number);
      const viewport = page.getViewport({ scale: dpi / POINTS_PER_INCH });
      const canvas = createCanvas(Math.round(viewport.width), Math.round(viewport.height));
      const context = canvas.getContext('2d');
      context.fillStyle = '#ffffff';
      context.fillRect(0, 0, canvas.width, canvas.height);
      await page.render({ canvas: canvas as never, canvasContext: context as never, viewport }).promise;
      page.cleanup();
      const [x0 = 0, y0 = 0, x1 = 0, y1 = 0] = page.view;
      yield { canvas, width: x1 - x0, height: y1 - y0 };
    }
  } finally {
    await loading.destroy();
  }
}
