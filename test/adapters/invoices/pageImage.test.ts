import { describe, expect, it } from 'vitest';
import { type GreyImage, whitenPaper } from '../../../adapters/invoices/pageImage.js';

const WIDTH = 120;
const HEIGHT = 80;

function image(greyAt: (x: number, y: number) => number): GreyImage {
  const grey = new Uint8Array(WIDTH * HEIGHT);
  for (let y = 0; y < HEIGHT; y += 1) for (let x = 0; x < WIDTH; x += 1) grey[y * WIDTH + x] = greyAt(x, y);
  return { width: WIDTH, height: HEIGHT, grey };
}

describe('whitenPaper', () => {
  it('removes shadow and noise of the paper and keeps the ink', () => {
    const noise = (x: number, y: number) => ((x * 7 + y * 13) % 21) - 10;
    const isInk = (x: number, y: number) => y % 20 === 0 && x % 3 === 0;
    const shadowed = (x: number, y: number) => (isInk(x, y) ? 90 : 240 - x / 3 + noise(x, y));
    const { grey } = whitenPaper(image(shadowed));
    for (let y = 0; y < HEIGHT; y += 1)
      for (let x = 0; x < WIDTH; x += 1)
        expect(grey[y * WIDTH + x], `${x},${y}`).toBe(isInk(x, y) ? 90 : 255);
  });

  it('keeps an area of dark print as it is', () => {
    const band = image(() => 60);
    expect(whitenPaper(band)).toEqual(band);
  });
});
