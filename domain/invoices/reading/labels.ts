/**
 * Words that invoices use for their sums, columns and facts, in English, German, French and Spanish. A layout adds
 * words of its own.
 */

/** Sums below or beside the lines. */
export const SUM_ROLES = ['subtotal', 'net', 'discount', 'tax', 'total', 'credit', 'paid', 'due'] as const;
export type SumRole = (typeof SUM_ROLES)[number];

/** Names of taxes at the start of a label, after at most a few other words. */
const TAX_WORDS =
  '(?:sales tax|use tax|consumption tax|tax(?:es)?|vat|gst(?:/hst)?|hst|pst|qst|ct|mwst\\.?|ust\\.?|umsatzsteuer|mehrwertsteuer|tva|iva|igic|btw|moms|mva|jct)';

/** Narrower labels precede wider ones: "Total excluding tax" is not a total. */
const SUM_LABELS: readonly [SumRole, RegExp][] = [
  [
    'net',
    new RegExp(
      `^(?:total|amount|sum|summe|net(?:to)?)\\s*(?:amount\\s*)?\\(?(?:excl(?:uding|\\.)?|before|without|ohne|exkl\\.?|hors|sin|net of|ht\\b)\\s*${TAX_WORDS}?|^(?:net(?:to)? (?:amount|total|value|charges|sum)|nettobetrag|netto(?:summe)?|total ht|total h\\.t\\.|montant ht|base imponible|taxable (?:amount|total)|pre-?tax total)\\b`,
      'i',
    ),
  ],
  [
    'subtotal',
    /^(?:sub-?\s?total|zwischensumme|sous-total|total charges|charges$|usage charges$|total usage charges|summe der positionen)\b/i,
  ],
  [
    'due',
    /^(?:(?:total )?amount (?:due|payable|owed|remaining)|payment due|(?:balance|total|remaining|net)(?: amount)? (?:due|payable|outstanding)|outstanding(?: balance)?|to pay|please pay|payable|due(?= |$)|zu zahlen(?:der betrag)?|zahlbetrag|offener betrag|fälliger betrag|restbetrag|montant dû|reste [àáâäa] payer|net [àáâäa] payer|importe adeudado|saldo pendiente)\b/i,
  ],
  [
    'paid',
    /^(?:amount (?:already )?paid|total paid|paid(?: on| by| with|\b)|payments?(?! (?:method|history|terms|card))(?: received| made| applied)?|less payments?|already paid|bereits (?:be|ge)zahlt|gezahlt|bezahlt|zahlung(?:en)?|déjà payé|montant payé|pagado)\b/i,
  ],
  [
    'tax',
    new RegExp(
      `^(?:[\\p{L}.]+(?: [\\p{L}.]+){0,3}[\\s:,-]+)?(?:total |estimated |zzgl\\.? |plus |incl(?:uding|\\.|usive)? |inkl\\.? |dont )?(?:\\d+(?:[.,]\\d+)?\\s?%\\s*)?${TAX_WORDS}(?![\\p{L}])|reverse[- ]charge`,
      'iu',
    ),
  ],
  [
    'discount',
    /^(?:[\p{L}\d%.,&-]+\s+){0,4}?(?:discounts?|coupon|promo(?:tion|tional)?(?: code)?|rebate|rabatt|nachlass|remise|descuento|savings)\b|\d\s?%\s?off\b/iu,
  ],
  [
    'credit',
    /^(?:(?:less|applied|account|customer|prepaid|service|promotional|azure|aws|google|free|startup|total|other)\s+){0,3}(?:credits?(?: notes?)?(?: applied| used| balance)?|balance(?: applied| brought forward)?|guthaben|gutschrift(?:en)?|avoirs?|applied balance|starting balance)\b/i,
  ],
  [
    'total',
    /^(?:(?:invoice|grand|bill|order|document|credit note|receipt)[\s-]+total|total(?: amount| charged| cost| \(?incl[^0-9$€£]*| for this invoice| charges?| invoice(?: amount)?| ttc| t\.t\.c\.| \([a-z]{3}\)| (?:usd|eur|gbp|chf))?$|total(?=\s*[:(]|$)|total\b|gesamt(?:betrag|summe|preis)?|rechnungsbetrag|endbetrag|bruttobetrag|brutto|montant total|importe total|summe|invoice amount)/i,
  ],
];

/** A registration number is not a sum. */
const IDENTIFIER =
  /\b(?:registration|identification|abn|siren|siret|reg\.? no|(?:vat|tax|gst|tva|ust)[\s-]*(?:id(?:nr)?|number|no\.?|nr\.?|reg)\b)/i;

/** The role of a sum's label; undefined for other texts. */
export function sumRoleOf(label: string): SumRole | undefined {
  const text = label
    .replace(/\s+/g, ' ')
    .replace(/^[\s*•·|–-]+/, '')
    .replace(/[\s:.…_|–-]+$/, '')
    .trim();
  if (text === '' || text.length > 120 || IDENTIFIER.test(text)) return undefined;
  return SUM_LABELS.find(([, pattern]) => pattern.test(text))?.[0];
}

/** Labels of rows that carry a sum over a page break or close a group. */
export const CARRIED =
  /^(?:carried|brought|balance) forward|^(?:amount )?carried over|^übertrag|^(?:page|sheet) (?:sub)?total|^report(?: à nouveau)?$|^subtotal (?:of |for )?(?:this )?page|^continued/i;

/** The same words anywhere in a label. */
export const CARRIED_WORDS =
  /(?:carried|brought) forward|carried over|übertrag|à reporter|report(?:é)?\b|page (?:sub)?total/i;

export const INCLUSIVE_TAX =
  /\b(?:incl(?:uded|uding|usive|\.)?|inkl\.?|enthalten(?:e)?|dont|included in)(?:\b|(?=\s))/i;
export const REVERSE_CHARGE =
  /reverse[- ]?charge|autoliquidation|steuerschuldnerschaft|inversión del sujeto pasivo/i;

/** Columns of a table of lines. */
export const COLUMN_ROLES = [
  'description',
  'period',
  'quantity',
  'unitPrice',
  'taxRate',
  'taxAmount',
  'gross',
  'amount',
] as const;
export type ColumnRole = (typeof COLUMN_ROLES)[number];

/** Searched in this order; the first match takes its words. */
export const COLUMN_LABELS: readonly [ColumnRole, RegExp][] = [
  [
    'gross',
    /\b(?:gross(?: amount)?|amount incl\.?[\w .]*|total incl\.?[\w .]*|total ttc|brutto(?:betrag)?|total \(incl[^)]*\))/giu,
  ],
  ['taxRate', /\b(?:(?:tax|vat|gst|mwst|ust|tva|iva) ?(?:rate|%|-satz|satz)|taux(?: de)? tva|tax %)/giu],
  [
    'unitPrice',
    /\b(?:(?:unit|list|net unit|effective)[ -]?(?:price|cost|rate)(?: ?(?:\(.*?\)|\/ ?\w+|per \S+(?: tokens)?))?|price(?: ?(?:\/|per) ?(?:unit|\S+(?: tokens)?))?|cost per unit|rate(?: ?(?:\/|per) ?\S+)?|einzelpreis|preis|stückpreis|prix unitaire|prix unit\.?|p\.?u\.?(?: ?ht)?|precio(?: unitario)?)(?![\p{L}])/giu,
  ],
  ['taxAmount', /\b(?:(?:tax|vat|gst|mwst) ?amount|steuerbetrag|montant tva)\b/giu],
  ['taxRate', /\b(?:tax(?:es)?|vat|gst|mwst\.?|ust\.?|tva|iva)(?![\p{L}])/giu],
  [
    'quantity',
    /\b(?:qty\.?|quantity(?: ?\(.*?\))?|qté|quantité|quantities|units?(?: used)?|usage(?: quantity)?|consumed(?: quantity)?|menge|anzahl|cantidad|cant\.?|tokens(?: used)?|hours|volume|count)(?![\p{L}])/giu,
  ],
  [
    'period',
    /\b(?:(?:service |billing |usage )?period|interval|service dates?|dates?|zeitraum|période|periodo)(?![\p{L}])/giu,
  ],
  [
    'description',
    /\b(?:description|items?|services?(?: name)?|product(?:s| name)?|details?|beschreibung|bezeichnung|leistung|position|désignation|libellé|descripción|concepto|meter|sku(?: description)?|resource|charge type|model|usage type|project|section|invoice section)(?![\p{L}])/giu,
  ],
  [
    'amount',
    /\b(?:(?:net|line|extended|total)? ?(?:amount|total|cost|price)(?: ?(?:\(.*?\)|excl\.?[\w .]*))?|charges?(?![\p{L}])(?: ?\(.*?\))?|betrag|gesamt(?:preis|betrag)?|summe|netto(?:betrag)?|montant(?: ht)?|total ht|importe|subtotal|net)(?:(?<=\))|(?![\p{L}]))/giu,
  ],
];
