import { describe, expect, it } from 'vitest';
import { isUsableText, type TextItem, turnOfText, wordsOf } from '../../../adapters/invoices/textLayer.js';

/** A4, upright: pdf.js's transform of a page of 842 points. */
const PAGE = { transform: [1, 0, 0, -1, 0, 842], scale: 1 };

function item(str: string, x: number, y: number, width: number, size = 10): TextItem {
  return { str, width, transform: [size, 0, 0, size, x, 842 - y] };
}

describe('words of a text layer', () => {
  it('split a piece at its spaces and keep its outer edges', () => {
    const words = wordsOf([item('Total due $10.00', 100, 200, 80)], PAGE);
    expect(words.map(({ text }) => text)).toEqual(['Total', 'due', '$10.00']);
    expect(words[0]?.x).toBeCloseTo(100);
    const last = words[2];
    expect((last?.x ?? 0) + (last?.width ?? 0)).toBeCloseTo(180);
    expect(words[1]?.x).toBeGreaterThan((words[0]?.x ?? 0) + (words[0]?.width ?? 0));
    expect(words[0]?.y).toBeCloseTo(192.6);
  });

  it('join letters that are set one by one, in whatever order', () => {
    const letters = [...'$1,234.50'].map((letter, at) => item(letter, 300 + at * 5.5, 400, 5.5));
    const words = wordsOf([...letters].reverse(), PAGE);
    expect(words.map(({ text }) => text)).toEqual(['$1,234.50']);
    expect(words[0]?.width).toBeCloseTo(49.5);
  });

  it('keep neighbours in a table apart', () => {
    const words = wordsOf([item('1,000', 300, 400, 25), item('$5.00', 330, 400, 25)], PAGE);
    expect(words.map(({ text }) => text)).toEqual(['1,000', '$5.00']);
  });

  it('drop what is set twice for a bold look', () => {
    const words = wordsOf([item('Total', 300, 400, 25), item('Total', 300.3, 400, 25)], PAGE);
    expect(words.map(({ text }) => text)).toEqual(['Total']);
  });

  it('have upright boxes where the text itself is turned', () => {
    const sideways: TextItem = { str: 'Draft copy', width: 60, transform: [0, 10, -10, 0, 50, 500] };
    const words = wordsOf([sideways], PAGE);
    expect(words.map(({ text }) => text)).toEqual(['Draft', 'copy']);
    expect(words[0]?.height).toBeGreaterThan(words[0]?.width ?? 0);
    expect(turnOfText([sideways], PAGE)).toBe(90);
    expect(turnOfText([sideways, item('upright text', 50, 50, 60)], PAGE)).toBe(0);
  });
});

describe('a text layer', () => {
  const usable = (text: string) => isUsableText(text.split(' ').map((word) => ({ text: word })));
  const TEXT =
    'Invoice number 0001 Date of issue August 1, 2026 GPT-5 mini input tokens 1,234 $0.00 Subtotal $10.00 Amount due';

  it('is usable when it has the words of a page', () => {
    expect(usable(TEXT)).toBe(true);
    expect(
      usable('Rechnung Nr. 17 für Tokens der Modelle, Umsatzsteuer 19 % von 100,00 € ergibt 19,00 €'),
    ).toBe(true);
    expect(
      usable(
        '請求書 番号 1234 トークン使用料 合計 ¥12,000 請求先 株式会社サンプル 発行日 2026年8月1日 支払期限 2026年8月31日 数量 単価 金額',
      ),
    ).toBe(true);
  });

  it('is not usable when it is short or what a font without a right map leaves', () => {
    expect(usable('Page 1 of 2')).toBe(false);
    const shifted = [...TEXT].map((letter) =>
      letter === ' ' ? ' ' : String.fromCharCode(letter.charCodeAt(0) - 29),
    );
    expect(usable(shifted.join(''))).toBe(false);
    expect(usable([...TEXT].map((letter) => (letter === ' ' ? ' ' : '\uE012')).join(''))).toBe(false);
  });
});
