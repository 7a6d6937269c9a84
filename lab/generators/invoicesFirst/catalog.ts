/** Suppliers, customers and billed items, in this generator's own words. Prices are dollars per million tokens. */

export interface Model {
  name: string;
  input: string;
  cached: string | null;
  output: string;
}

export interface Supplier {
  id: string;
  layout: 'stripe' | 'aws' | 'azure' | 'google';
  issuer: { name: string; address: string[] };
  email: string;
  colour: string;
  models: Model[];
  prepaid: string;
  seat: string;
}

function models(...rows: [string, string, string | null, string][]): Model[] {
  return rows.map(([name, input, cached, output]) => ({ name, input, cached, output }));
}

export const SUPPLIERS: Supplier[] = [
  {
    id: 'openai',
    layout: 'stripe',
    issuer: {
      name: 'OpenAI, LLC',
      address: ['548 Market Street', 'PMB 97273', 'San Francisco, California 94104-5401', 'United States'],
    },
    email: 'ar@openai.com',
    colour: '#0d0d0d',
    models: models(
      ['gpt-5.5-2026-04-23', '1.75', '0.175', '14'],
      ['gpt-5-mini-2025-08-07', '0.25', '0.025', '2'],
      ['gpt-4o-2024-08-06', '2.5', '1.25', '10'],
      ['gpt-4.1-nano-2025-04-14', '0.1', '0.025', '0.4'],
      ['o3-2025-04-16', '2', '0.5', '8'],
      ['text-embedding-3-large', '0.13', null, '0'],
    ),
    prepaid: 'OpenAI API usage credit',
    seat: 'ChatGPT Team Subscription (per seat)',
  },
  {
    id: 'anthropic',
    layout: 'stripe',
    issuer: {
      name: 'Anthropic, PBC',
      address: ['548 Market Street', 'PMB 90375', 'San Francisco, California 94104', 'United States'],
    },
    email: 'support@anthropic.com',
    colour: '#c15f3c',
    models: models(
      ['Claude Opus 5', '5', '0.5', '25'],
      ['Claude Sonnet 4.5', '3', '0.3', '15'],
      ['Claude Haiku 4.5', '1', '0.1', '5'],
      ['Claude Opus 4.1', '15', '1.5', '75'],
    ),
    prepaid: 'One-time credit purchase',
    seat: 'Team plan - Premium',
  },
  {
    id: 'aws_bedrock',
    layout: 'aws',
    issuer: {
      name: 'Amazon Web Services, Inc.',
      address: ['410 Terry Avenue North', 'Seattle, WA 98109-5210', 'US'],
    },
    email: '',
    colour: '#ff9900',
    models: models(
      ['Claude Sonnet 4.5', '3', '0.3', '15'],
      ['Nova2.0Lite', '0.3', null, '2.5'],
      ['Llama4 Maverick 17B', '0.24', null, '0.97'],
    ),
    prepaid: '',
    seat: '',
  },
  {
    id: 'azure_openai',
    layout: 'azure',
    issuer: {
      name: 'Microsoft Corporation',
      address: ['One Microsoft Way', 'Redmond, WA 98052', 'United States'],
    },
    email: '',
    colour: '#0078d4',
    models: models(
      ['gpt-4o-0806', '2.5', '1.25', '10'],
      ['5.4 mini', '0.75', '0.075', '4.5'],
      ['5.4 pp', '3', '0.3', '22.5'],
      ['gpt 4.1', '2', '0.5', '8'],
    ),
    prepaid: '',
    seat: '',
  },
  {
    id: 'google',
    layout: 'google',
    issuer: {
      name: 'Google LLC',
      address: ['1600 Amphitheatre Pkwy', 'Mountain View, CA 94043', 'United States'],
    },
    email: '',
    colour: '#1a73e8',
    models: models(
      ['Gemini 2.5 Flash GA', '0.3', '0.03', '2.5'],
      ['Gemini 2.5 Pro', '1.25', '0.125', '10'],
      ['Gemini 3.1 Flash Lite', '0.25', '0.025', '1.5'],
      ['Gemini 3 Pro', '2', '0.2', '12'],
    ),
    prepaid: '',
    seat: '',
  },
  {
    id: 'mistral',
    layout: 'stripe',
    issuer: {
      name: 'Mistral AI',
      address: ['15 rue des Halles', '75001 Paris', 'France', 'FR VAT FR61952418325'],
    },
    email: 'billing@mistral.ai',
    colour: '#fa520f',
    models: models(
      ['mistral-large-2512', '2', null, '6'],
      ['mistral-medium-2508', '0.4', null, '2'],
      ['codestral-2508', '0.3', null, '0.9'],
      ['ministral-8b-2512', '0.15', null, '0.15'],
    ),
    prepaid: 'La Plateforme prepaid credits',
    seat: 'Le Chat Team - seat',
  },
  {
    id: 'cohere',
    layout: 'stripe',
    issuer: {
      name: 'Cohere Inc.',
      address: ['171 John Street, Suite 200', 'Toronto, Ontario M5T 1X3', 'Canada'],
    },
    email: 'support@cohere.com',
    colour: '#39594d',
    models: models(
      ['command-a-03-2025', '2.5', null, '10'],
      ['command-r7b-12-2024', '0.0375', null, '0.15'],
      ['command-r-plus-08-2024', '2.5', null, '10'],
      ['embed-v4.0', '0.12', null, '0'],
    ),
    prepaid: 'Cohere platform credits',
    seat: 'North workspace member',
  },
  {
    id: 'xai',
    layout: 'stripe',
    issuer: {
      name: 'X.AI LLC',
      address: ['1450 Page Mill Road', 'Palo Alto, California 94304', 'United States'],
    },
    email: 'billing@x.ai',
    colour: '#111111',
    models: models(
      ['grok-4', '3', '0.75', '15'],
      ['grok-4-fast-reasoning', '0.2', '0.05', '0.5'],
      ['grok-code-fast-1', '0.2', '0.02', '1.5'],
    ),
    prepaid: 'API prepaid credits',
    seat: 'Grok Business seat',
  },
];

export interface Customer {
  name: string;
  address: string[];
  /** Names and percentages of this country's taxes; empty: none. */
  taxes: [name: string, percent: string][];
  country: string;
  /** Foreign suppliers apply reverse charge. */
  isReverseCharge: boolean;
  currency: string;
}

export const CUSTOMERS: Customer[] = [
  [
    'Brightwater Analytics Inc.',
    '2201 3rd Street|San Francisco, California 94107|United States',
    [],
    'United States',
    false,
    'USD',
  ],
  [
    'Longhorn Freight Systems',
    '98 San Jacinto Blvd, Suite 400|Austin, Texas 78701|United States',
    [['Sales Tax - Texas', '8.25']],
    'United States',
    false,
    'USD',
  ],
  [
    'Nordlicht Software GmbH',
    'Torstraße 41|10119 Berlin|Germany|DE VAT DE301234567',
    [['VAT - Germany', '19']],
    'Germany',
    true,
    'EUR',
  ],
  [
    'Fjällräv Data AB',
    'Drottninggatan 12|111 51 Stockholm|Sweden',
    [['VAT - Sweden', '25']],
    'Sweden',
    false,
    'USD',
  ],
  [
    'Wharf & Penrose Ltd',
    '14 Leadenhall Court|London EC3V 1LR|United Kingdom',
    [['VAT - United Kingdom', '20']],
    'United Kingdom',
    false,
    'GBP',
  ],
  [
    'Uetliberg Medien AG',
    'Bahnhofstrasse 7|8001 Zürich|Switzerland',
    [['VAT - Switzerland', '8.1']],
    'Switzerland',
    false,
    'CHF',
  ],
  [
    'Érable Numérique Inc.',
    '1200 rue Sainte-Catherine O|Montréal, Québec H3B 1K9|Canada',
    [
      ['GST - Canada', '5'],
      ['QST - Quebec', '9.975'],
    ],
    'Canada',
    false,
    'CAD',
  ],
  [
    'Kookaburra Health Pty Ltd',
    '55 Pitt Street|Sydney NSW 2000|Australia',
    [['GST - Australia', '10']],
    'Australia',
    false,
    'AUD',
  ],
  [
    'Shirakawa Seiko K.K.',
    '2-4-1 Marunouchi, Chiyoda-ku|Tokyo 100-6390|Japan',
    [['JCT - Japan', '10']],
    'Japan',
    false,
    'JPY',
  ],
  [
    'Atelier Ondine SAS',
    '8 quai de Jemmapes|75010 Paris|France|FR VAT FR40303265045',
    [['VAT - France', '20']],
    'France',
    true,
    'EUR',
  ],
  [
    'Liffey Robotics Limited',
    '6 Grand Canal Square|Dublin 2 D02 P820|Ireland|IE VAT IE6388047V',
    [['VAT - Ireland', '23']],
    'Ireland',
    true,
    'USD',
  ],
].map(([name, address, taxes, country, isReverseCharge, currency]) => ({
  name,
  address: (address as string).split('|'),
  taxes,
  country,
  isReverseCharge,
  currency,
})) as Customer[];
