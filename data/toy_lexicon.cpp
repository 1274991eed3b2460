// The tables of the toy language pair. One line a word: add a line and the grammar uses it. Left out on
// purpose are forms with two readings (la porte and il porte, le lit and il lit, son for his or her,
// courir à for running at and to).
#include "weft/data/toy_lexicon.h"

#include <vector>

namespace weft::toy {
namespace {

constexpr Gender M = Gender::kMasculine;
constexpr Gender F = Gender::kFeminine;

constexpr Noun kNouns[] = {
    {kKin, M, "père", "", "father", ""},
    {kKin, F, "mère", "", "mother", ""},
    {kKin, M, "frère", "frères", "brother", "brothers"},
    {kKin, F, "sœur", "sœurs", "sister", "sisters"},
    {kKin, M, "oncle", "oncles", "uncle", "uncles"},
    {kKin, F, "tante", "tantes", "aunt", "aunts"},
    {kKin, M, "cousin", "cousins", "cousin", "cousins"},
    {kKin, M, "ami", "amis", "friend", "friends"},
    {kKin, F, "amie", "amies", "friend", "friends"},
    {kKin, M, "voisin", "voisins", "neighbour", "neighbours"},
    {kKin, F, "voisine", "voisines", "neighbour", "neighbours"},
    {kAdult, M, "homme", "hommes", "man", "men"},
    {kAdult, F, "femme", "femmes", "woman", "women"},
    {kAdult, M, "roi", "rois", "king", "kings"},
    {kAdult, F, "reine", "reines", "queen", "queens"},
    {kChild, M, "garçon", "garçons", "boy", "boys"},
    {kChild, F, "fille", "filles", "girl", "girls"},
    {kChild, M, "enfant", "enfants", "child", "children"},
    {kJob, M, "médecin", "médecins", "doctor", "doctors"},
    {kJob, M, "professeur", "professeurs", "teacher", "teachers"},
    {kJob, M, "étudiant", "étudiants", "student", "students"},
    {kJob, F, "étudiante", "étudiantes", "student", "students"},
    {kJob, M, "boulanger", "boulangers", "baker", "bakers"},
    {kJob, F, "infirmière", "infirmières", "nurse", "nurses"},
    {kJob, M, "acteur", "acteurs", "actor", "actors"},
    {kJob, F, "actrice", "actrices", "actress", "actresses"},
    {kJob, F, "chanteuse", "chanteuses", "singer", "singers"},
    {kAnimal, M, "chat", "chats", "cat", "cats"},
    {kAnimal, M, "chien", "chiens", "dog", "dogs"},
    {kAnimal, M, "cheval", "chevaux", "horse", "horses"},
    {kAnimal, M, "oiseau", "oiseaux", "bird", "birds"},
    {kAnimal, F, "souris", "souris", "mouse", "mice"},
    {kAnimal, M, "lapin", "lapins", "rabbit", "rabbits"},
    {kAnimal, F, "vache", "vaches", "cow", "cows"},
    {kAnimal, M, "mouton", "moutons", "sheep", "sheep"},
    {kAnimal, M, "hibou", "hiboux", "owl", "owls"},
    {kAnimal, M, "éléphant", "éléphants", "elephant", "elephants"},
    {kAnimal, F, "oie", "oies", "goose", "geese"},
    {kAnimal, M, "ours", "ours", "bear", "bears"},
    {kFood, F, "pomme", "pommes", "apple", "apples"},
    {kFood, F, "poire", "poires", "pear", "pears"},
    {kFood, F, "orange", "oranges", "orange", "oranges"},
    {kFood, M, "œuf", "œufs", "egg", "eggs"},
    {kFood, M, "gâteau", "gâteaux", "cake", "cakes"},
    {kFood, F, "fraise", "fraises", "strawberry", "strawberries"},
    {kFood, F, "tomate", "tomates", "tomato", "tomatoes"},
    {kFood, M, "haricot", "haricots", "bean", "beans"},
    {kFood, M, "sandwich", "sandwichs", "sandwich", "sandwiches"},
    {kDish, M, "pain", "", "bread", ""},
    {kDish, M, "fromage", "", "cheese", ""},
    {kDish, F, "soupe", "", "soup", ""},
    {kDish, F, "viande", "", "meat", ""},
    {kDish, M, "riz", "", "rice", ""},
    {kDish, M, "chocolat", "", "chocolate", ""},
    {kDrink, F, "eau", "", "water", ""},
    {kDrink, M, "lait", "", "milk", ""},
    {kDrink, M, "thé", "", "tea", ""},
    {kDrink, M, "café", "", "coffee", ""},
    {kDrink, M, "vin", "", "wine", ""},
    {kDrink, F, "bière", "", "beer", ""},
    {kText, M, "livre", "livres", "book", "books"},
    {kText, M, "journal", "journaux", "newspaper", "newspapers"},
    {kText, F, "lettre", "lettres", "letter", "letters"},
    {kText, F, "histoire", "histoires", "story", "stories"},
    {kText, M, "article", "articles", "article", "articles"},
    {kText, M, "poème", "poèmes", "poem", "poems"},
    {kThing, F, "table", "tables", "table", "tables"},
    {kThing, F, "chaise", "chaises", "chair", "chairs"},
    {kThing, M, "chapeau", "chapeaux", "hat", "hats"},
    {kThing, M, "manteau", "manteaux", "coat", "coats"},
    {kThing, F, "robe", "robes", "dress", "dresses"},
    {kThing, F, "clé", "clés", "key", "keys"},
    {kThing, M, "parapluie", "parapluies", "umbrella", "umbrellas"},
    {kThing, F, "valise", "valises", "suitcase", "suitcases"},
    {kThing, M, "ordinateur", "ordinateurs", "computer", "computers"},
    {kThing, F, "assiette", "assiettes", "plate", "plates"},
    {kThing, M, "couteau", "couteaux", "knife", "knives"},
    {kThing, F, "boîte", "boîtes", "box", "boxes"},
    {kThing, F, "fleur", "fleurs", "flower", "flowers"},
    {kThing, F, "horloge", "horloges", "clock", "clocks"},
    {kThing, M, "anneau", "anneaux", "ring", "rings"},
    {kThing, M, "uniforme", "uniformes", "uniform", "uniforms"},
    {kBig, F, "voiture", "voitures", "car", "cars"},
    {kBig, F, "maison", "maisons", "house", "houses"},
    {kBig, M, "vélo", "vélos", "bike", "bikes"},
    {kBig, M, "bateau", "bateaux", "boat", "boats"},
    {kBig, M, "avion", "avions", "plane", "planes"},
};

// Fixed expressions restrict what an adjective describes: petite amie, vieux garçon, grand homme, beau-père.
constexpr auto kBefore = Position::kBefore;
constexpr auto kAfter = Position::kAfter;
constexpr auto kSecond = Position::kAfterSecond;
constexpr auto kState = Position::kState;
constexpr unsigned kOrigin = kAdult | kChild | kJob | kKin | kText | kGoods | kDish;

constexpr Adjective kAdjectives[] = {
    {kBefore, kChild | kAnimal | kFood | kGoods, "petit", "petite", "petits", "petites", "little"},
    {kBefore, kAnimal | kGoods, "grand", "grande", "grands", "grandes", "big"},
    {kBefore, kAnimal | kGoods | kText, "beau", "belle", "beaux", "belles", "beautiful", "bel"},
    {kBefore, kAdult | kJob | kKin | kAnimal | kGoods | kText, "vieux", "vieille", "vieux", "vieilles", "old", "vieil"},
    {kBefore, kJob | kAnimal | kGoods | kText, "nouveau", "nouvelle", "nouveaux", "nouvelles", "new", "nouvel"},
    {kBefore, kJob | kMeals | kDrink | kText, "bon", "bonne", "bons", "bonnes", "good"},
    {kBefore, kMeals | kDrink | kText, "mauvais", "mauvaise", "mauvais", "mauvaises", "bad"},
    {kBefore, kPeople | kAnimal, "jeune", "jeune", "jeunes", "jeunes", "young"},
    {kBefore, kGoods | kAnimal, "joli", "jolie", "jolis", "jolies", "pretty"},
    {kBefore, kPeople, "gentil", "gentille", "gentils", "gentilles", "kind"},
    {kSecond, kGoods, "rouge", "rouge", "rouges", "rouges", "red"},
    {kSecond, kGoods, "bleu", "bleue", "bleus", "bleues", "blue"},
    {kSecond, kGoods, "vert", "verte", "verts", "vertes", "green"},
    {kSecond, kGoods | kAnimal, "noir", "noire", "noirs", "noires", "black"},
    {kSecond, kGoods | kAnimal, "blanc", "blanche", "blancs", "blanches", "white"},
    {kSecond, kOrigin, "français", "française", "français", "françaises", "French"},
    {kSecond, kOrigin, "anglais", "anglaise", "anglais", "anglaises", "English"},
    {kSecond, kOrigin, "italien", "italienne", "italiens", "italiennes", "Italian"},
    {kSecond, kOrigin, "japonais", "japonaise", "japonais", "japonaises", "Japanese"},
    {kSecond, kOrigin, "européen", "européenne", "européens", "européennes", "European"},
    {kAfter, kAdult | kJob | kText, "intéressant", "intéressante", "intéressants", "intéressantes", "interesting"},
    {kAfter, kAdult | kJob | kText, "important", "importante", "importants", "importantes", "important"},
    {kAfter, kText, "difficile", "difficile", "difficiles", "difficiles", "difficult"},
    {kAfter, kAdult | kJob | kText, "célèbre", "célèbre", "célèbres", "célèbres", "famous"},
    {kAfter, kPeople | kAnimal, "intelligent", "intelligente", "intelligents", "intelligentes", "intelligent"},
    {kAfter, kAdult | kJob | kKin, "riche", "riche", "riches", "riches", "rich"},
    {kAfter, kDish | kDrink, "chaud", "chaude", "chauds", "chaudes", "hot"},
    {kAfter, kDish | kDrink, "froid", "froide", "froids", "froides", "cold"},
    {kAfter, kMeals | kDrink, "délicieux", "délicieuse", "délicieux", "délicieuses", "delicious"},
    {kAfter, kGoods | kMeals | kDrink, "cher", "chère", "chers", "chères", "expensive"},
    {kAfter, kGoods, "sale", "sale", "sales", "sales", "dirty"},
    {kAfter, kGoods, "propre", "propre", "propres", "propres", "clean"},
    {kState, kPeople | kAnimal, "fatigué", "fatiguée", "fatigués", "fatiguées", "tired"},
    {kState, kPeople | kAnimal, "malade", "malade", "malades", "malades", "sick"},
    {kState, kPeople, "heureux", "heureuse", "heureux", "heureuses", "happy"},
    {kState, kPeople, "triste", "triste", "tristes", "tristes", "sad"},
    {kState, kPeople, "occupé", "occupée", "occupés", "occupées", "busy"},
};

constexpr auto kAvoir = Past::kAvoir;
constexpr auto kEtre = Past::kEtre;
constexpr auto kImperfect = Past::kImperfect;
constexpr unsigned kHandy = kThing | kText;  // what fits in a hand

constexpr Verb kVerbs[] = {
    {Frame::kNothing, 0, kAvoir, true, "dormir", "dors dors dort dormons dormez dorment", "dormi", "sleep", "sleeps",
     "slept"},
    {Frame::kNothing, 0, kAvoir, false, "travailler",
     "travaille travailles travaille travaillons travaillez travaillent", "travaillé", "work", "works", "worked"},
    {Frame::kNothing, 0, kAvoir, false, "chanter", "chante chantes chante chantons chantez chantent", "chanté", "sing",
     "sings", "sang"},
    {Frame::kNothing, 0, kAvoir, false, "danser", "danse danses danse dansons dansez dansent", "dansé", "dance",
     "dances", "danced"},
    {Frame::kNothing, 0, kAvoir, true, "nager", "nage nages nage nageons nagez nagent", "nagé", "swim", "swims",
     "swam"},
    {Frame::kNothing, 0, kAvoir, false, "pleurer", "pleure pleures pleure pleurons pleurez pleurent", "pleuré", "cry",
     "cries", "cried"},
    {Frame::kGo, 0, kEtre, true, "aller", "vais vas va allons allez vont", "allé", "go", "goes", "went"},
    {Frame::kStay, 0, kEtre, false, "arriver", "arrive arrives arrive arrivons arrivez arrivent", "arrivé", "arrive",
     "arrives", "arrived"},
    {Frame::kStay, 0, kEtre, true, "rester", "reste restes reste restons restez restent", "resté", "stay", "stays",
     "stayed"},
    {Frame::kLive, 0, kAvoir, false, "habiter", "habite habites habite habitons habitez habitent", "habité", "live",
     "lives", "lived"},
    {Frame::kCome, 0, kEtre, false, "venir", "viens viens vient venons venez viennent", "venu", "come", "comes",
     "came"},
    {Frame::kLeave, 0, kEtre, false, "partir", "pars pars part partons partez partent", "parti", "leave", "leaves",
     "left"},
    {Frame::kVisit, 0, kAvoir, false, "visiter", "visite visites visite visitons visitez visitent", "visité", "visit",
     "visits", "visited"},
    {Frame::kObject, kMeals, kAvoir, true, "manger", "mange manges mange mangeons mangez mangent", "mangé", "eat",
     "eats", "ate"},
    {Frame::kObject, kDrink, kAvoir, true, "boire", "bois bois boit buvons buvez boivent", "bu", "drink", "drinks",
     "drank"},
    {Frame::kObject, kMeals | kDrink | kText | kGoods, kAvoir, false, "acheter",
     "achète achètes achète achetons achetez achètent", "acheté", "buy", "buys", "bought"},
    {Frame::kObject, kMeals | kGoods | kAnimal, kAvoir, false, "vendre", "vends vends vend vendons vendez vendent",
     "vendu", "sell", "sells", "sold"},
    {Frame::kObject, kText, kAvoir, false, "lire", "lis lis lit lisons lisez lisent", "lu", "read", "reads", "read"},
    {Frame::kObject, kText, kAvoir, false, "écrire", "écris écris écrit écrivons écrivez écrivent", "écrit", "write",
     "writes", "wrote"},
    {Frame::kObject, kPeople | kAnimal | kGoods, kAvoir, true, "voir", "vois vois voit voyons voyez voient", "vu",
     "see", "sees", "saw"},
    {Frame::kObject, kPeople | kAnimal | kGoods, kAvoir, false, "regarder",
     "regarde regardes regarde regardons regardez regardent", "regardé", "look at", "looks at", "looked at"},
    {Frame::kObject, kPeople | kAnimal | kHandy, kAvoir, false, "chercher",
     "cherche cherches cherche cherchons cherchez cherchent", "cherché", "look for", "looks for", "looked for"},
    {Frame::kObject, kHandy | kAnimal, kAvoir, false, "trouver", "trouve trouves trouve trouvons trouvez trouvent",
     "trouvé", "find", "finds", "found"},
    {Frame::kObject, kHandy, kAvoir, false, "perdre", "perds perds perd perdons perdez perdent", "perdu", "lose",
     "loses", "lost"},
    {Frame::kObject, kHandy, kAvoir, false, "prendre", "prends prends prend prenons prenez prennent", "pris", "take",
     "takes", "took"},
    {Frame::kObject, kGoods | kText | kAnimal, kAvoir, false, "choisir",
     "choisis choisis choisit choisissons choisissez choisissent", "choisi", "choose", "chooses", "chose"},
    {Frame::kObject, kGoods | kAnimal, kAvoir, false, "dessiner",
     "dessine dessines dessine dessinons dessinez dessinent", "dessiné", "draw", "draws", "drew"},
    {Frame::kObject, kPeople, kAvoir, false, "rencontrer",
     "rencontre rencontres rencontre rencontrons rencontrez rencontrent", "rencontré", "meet", "meets", "met"},
    {Frame::kObject, kPeople, kAvoir, false, "aider", "aide aides aide aidons aidez aident", "aidé", "help", "helps",
     "helped"},
    {Frame::kObject, kPeople, kAvoir, false, "attendre", "attends attends attend attendons attendez attendent",
     "attendu", "wait for", "waits for", "waited for"},
    {Frame::kObject, kThing | kBig | kText | kAnimal, kImperfect, false, "avoir", "ai as a avons avez ont",
     "avais avais avait avions aviez avaient", "have", "has", "had"},
    {Frame::kObject, kMeals | kDrink | kGoods | kText | kAnimal, kImperfect, false, "vouloir",
     "veux veux veut voulons voulez veulent", "voulais voulais voulait voulions vouliez voulaient", "want", "wants",
     "wanted"},
    {Frame::kObject, kPeople, kImperfect, false, "connaître",
     "connais connais connaît connaissons connaissez connaissent",
     "connaissais connaissais connaissait connaissions connaissiez connaissaient", "know", "knows", "knew"},
    {Frame::kLove, kPeople | kAnimal | kGoods | kText, kImperfect, false, "aimer",
     "aime aimes aime aimons aimez aiment", "aimais aimais aimait aimions aimiez aimaient", "love", "loves", "loved"},
    {Frame::kLove, kPeople | kAnimal | kGoods | kText, kImperfect, false, "détester",
     "déteste détestes déteste détestons détestez détestent",
     "détestais détestais détestait détestions détestiez détestaient", "hate", "hates", "hated"},
    {Frame::kGive, kFood | kHandy, kAvoir, false, "donner", "donne donnes donne donnons donnez donnent", "donné",
     "give", "gives", "gave"},
    {Frame::kGive, kHandy, kAvoir, false, "envoyer", "envoie envoies envoie envoyons envoyez envoient", "envoyé",
     "send", "sends", "sent"},
    {Frame::kGive, kHandy | kBig | kAnimal, kAvoir, false, "montrer", "montre montres montre montrons montrez montrent",
     "montré", "show", "shows", "showed"},
    {Frame::kGame, 0, kAvoir, false, "jouer", "joue joues joue jouons jouez jouent", "joué", "play", "plays", "played"},
    {Frame::kInstrument, 0, kAvoir, false, "jouer", "joue joues joue jouons jouez jouent", "joué", "play", "plays",
     "played"},
    {Frame::kSpeak, 0, kAvoir, false, "parler", "parle parles parle parlons parlez parlent", "parlé", "speak", "speaks",
     "spoke"},
    {Frame::kLearn, 0, kAvoir, false, "apprendre", "apprends apprends apprend apprenons apprenez apprennent", "appris",
     "learn", "learns", "learned"},
};

constexpr Verb kBe = {Frame::kNothing,
                      0,
                      kImperfect,
                      true,
                      "être",
                      "suis es est sommes êtes sont",
                      "étais étais était étions étiez étaient",
                      "be",
                      "is",
                      "was"};
constexpr Verb kCan = {Frame::kNothing,
                       0,
                       kImperfect,
                       true,
                       "pouvoir",
                       "peux peux peut pouvons pouvez peuvent",
                       "pouvais pouvais pouvait pouvions pouviez pouvaient",
                       "can",
                       "can",
                       "could"};

constexpr Place kPlaces[] = {
    {M, "jardin", "dans", "the garden", "in the garden", "into the garden"},
    {F, "cuisine", "dans", "the kitchen", "in the kitchen", "into the kitchen"},
    {F, "forêt", "dans", "the forest", "in the forest", "into the forest"},
    {M, "parc", "à", "the park", "at the park", "to the park"},
    {M, "marché", "à", "the market", "at the market", "to the market"},
    {M, "musée", "à", "the museum", "at the museum", "to the museum"},
    {M, "restaurant", "à", "the restaurant", "at the restaurant", "to the restaurant"},
    {M, "bureau", "à", "the office", "at the office", "to the office"},
    {M, "hôtel", "à", "the hotel", "at the hotel", "to the hotel"},
    {M, "hôpital", "à", "the hospital", "at the hospital", "to the hospital"},
    {M, "aéroport", "à", "the airport", "at the airport", "to the airport"},
    {F, "école", "à", "the school", "at school", "to school"},
    {F, "église", "à", "the church", "at the church", "to the church"},
    {F, "université", "à", "the university", "at the university", "to the university"},
    {F, "gare", "à", "the station", "at the station", "to the station"},
    {F, "plage", "à", "the beach", "at the beach", "to the beach"},
    {F, "bibliothèque", "à", "the library", "at the library", "to the library"},
};

constexpr auto kCity = RegionKind::kCity;
constexpr auto kFeminine = RegionKind::kFeminine;
constexpr auto kMasculine = RegionKind::kMasculine;
constexpr auto kPlural = RegionKind::kPlural;

constexpr Region kRegions[] = {
    {kFeminine, "Afrique", "Africa"},
    {kFeminine, "Asie", "Asia"},
    {kFeminine, "Europe", "Europe"},
    {kFeminine, "Amérique", "America"},
    {kFeminine, "Australie", "Australia"},
    {kFeminine, "France", "France"},
    {kFeminine, "Italie", "Italy"},
    {kFeminine, "Espagne", "Spain"},
    {kFeminine, "Allemagne", "Germany"},
    {kFeminine, "Angleterre", "England"},
    {kFeminine, "Chine", "China"},
    {kFeminine, "Grèce", "Greece"},
    {kFeminine, "Suisse", "Switzerland"},
    {kFeminine, "Égypte", "Egypt"},
    {kMasculine, "Japon", "Japan"},
    {kMasculine, "Canada", "Canada"},
    {kMasculine, "Brésil", "Brazil"},
    {kMasculine, "Mexique", "Mexico"},
    {kMasculine, "Maroc", "Morocco"},
    {kPlural, "États-Unis", "the United States"},
    {kPlural, "Pays-Bas", "the Netherlands"},
    {kCity, "Paris", "Paris"},
    {kCity, "Londres", "London"},
    {kCity, "Rome", "Rome"},
    {kCity, "Berlin", "Berlin"},
    {kCity, "Madrid", "Madrid"},
    {kCity, "Lisbonne", "Lisbon"},
    {kCity, "Athènes", "Athens"},
    {kCity, "Vienne", "Vienna"},
    {kCity, "Genève", "Geneva"},
    {kCity, "Pékin", "Beijing"},
};

constexpr WordPair kMonths[] = {
    {"janvier", "January"}, {"février", "February"},    {"mars", "March"},        {"avril", "April"},
    {"mai", "May"},         {"juin", "June"},           {"juillet", "July"},      {"août", "August"},
    {"octobre", "October"}, {"septembre", "September"}, {"novembre", "November"}, {"décembre", "December"},
};
constexpr WordPair kSeasons[] = {
    {"au printemps", "in spring"}, {"en été", "in summer"}, {"en automne", "in autumn"}, {"en hiver", "in winter"}};
constexpr WordPair kDays[] = {{"lundi", "Monday"},   {"mardi", "Tuesday"},   {"mercredi", "Wednesday"},
                              {"jeudi", "Thursday"}, {"vendredi", "Friday"}, {"samedi", "Saturday"},
                              {"dimanche", "Sunday"}};
constexpr const char* kPastYears[] = {"1987", "1995", "2008", "2016"};
constexpr const char* kComingYears[] = {"2035", "2040", "2050"};

constexpr Name kNames[] = {
    {"Jane", F}, {"Marie", F},  {"Alice", F},   {"Emma", F},  {"Claire", F}, {"Sophie", F}, {"Inès", F},
    {"Paul", M}, {"Pierre", M}, {"Antoine", M}, {"Louis", M}, {"Marc", M},   {"Oscar", M},  {"Thomas", M},
};

constexpr Pronoun kPronouns[] = {
    {"je", "I", 0, true, M},      {"tu", "you", 1, true, M},      {"il", "he", 2, false, M},
    {"elle", "she", 2, false, F}, {"nous", "we", 3, true, M},     {"vous", "you", 4, true, M},
    {"ils", "they", 5, false, M}, {"elles", "they", 5, false, F},
};
constexpr Tonic kTonics[] = {{"moi", "me", 0},  {"toi", "you", 1},  {"lui", "him", 2}, {"elle", "her", 2},
                             {"nous", "us", 3}, {"vous", "you", 4}, {"eux", "them", 5}};
constexpr Possessive kPossessives[] = {{"mon", "ma", "mes", "my"},
                                       {"ton", "ta", "tes", "your"},
                                       {"notre", "notre", "nos", "our"},
                                       {"votre", "votre", "vos", "your"},
                                       {"leur", "leur", "leurs", "their"}};
constexpr WordPair kNumbers[] = {{"deux", "two"},   {"trois", "three"}, {"quatre", "four"},
                                 {"cinq", "five"},  {"six", "six"},     {"sept", "seven"},
                                 {"huit", "eight"}, {"neuf", "nine"},   {"dix", "ten"}};
constexpr WordPair kAdverbs[] = {{"souvent", "often"}, {"parfois", "sometimes"}, {"rarement", "rarely"}};
constexpr WordPair kLanguages[] = {{"français", "French"},   {"anglais", "English"}, {"italien", "Italian"},
                                   {"japonais", "Japanese"}, {"allemand", "German"}, {"espagnol", "Spanish"}};
constexpr Play kGames[] = {
    {"le", "tennis", "tennis"}, {"le", "football", "football"}, {"les", "échecs", "chess"}, {"les", "cartes", "cards"}};
constexpr Play kInstruments[] = {{"le", "piano", "the piano"},
                                 {"le", "violon", "the violin"},
                                 {"la", "guitare", "the guitar"},
                                 {"la", "flûte", "the flute"},
                                 {"le", "accordéon", "the accordion"}};

std::vector<TimePhrase> make_time_phrases() {
  std::vector<TimePhrase> all = {
      {TimeKind::kDeictic, kThen, "hier", "yesterday"},
      {TimeKind::kDeictic, kThen, "hier soir", "yesterday evening"},
      {TimeKind::kDeictic, kThen, "ce matin", "this morning"},
      {TimeKind::kDeictic, kThen, "la semaine dernière", "last week"},
      {TimeKind::kDeictic, kThen, "l'année dernière", "last year"},
      {TimeKind::kDeictic, kNow, "aujourd'hui", "today"},
      {TimeKind::kDeictic, kNow, "tous les jours", "every day"},
      {TimeKind::kDeictic, kNow, "le matin", "in the morning"},
      {TimeKind::kDeictic, kNow, "le soir", "in the evening"},
      {TimeKind::kDeictic, kAhead, "demain", "tomorrow"},
      {TimeKind::kDeictic, kAhead, "demain matin", "tomorrow morning"},
      {TimeKind::kDeictic, kAhead, "ce soir", "this evening"},
      {TimeKind::kDeictic, kAhead, "la semaine prochaine", "next week"},
      {TimeKind::kDeictic, kAhead, "l'année prochaine", "next year"},
      {TimeKind::kHour, kAlways, "à midi", "at noon"},
      {TimeKind::kHour, kAlways, "à minuit", "at midnight"},
      {TimeKind::kHour, kAlways, "à une heure", "at one o'clock"},
  };
  const std::string in = "in ", on = "on ";
  for (const auto& n : kNumbers) {
    all.push_back({TimeKind::kHour, kAlways, "à " + std::string(n.french) + " heures",
                   "at " + std::string(n.english) + " o'clock"});
  }
  for (const auto& m : kMonths) {
    all.push_back({TimeKind::kMonth, kAlways, "en " + std::string(m.french), in + m.english});
  }
  for (const auto& s : kSeasons) all.push_back({TimeKind::kMonth, kAlways, s.french, s.english});
  for (const auto& d : kDays) {
    all.push_back({TimeKind::kDay, kThen | kAhead, d.french, on + d.english});
    all.push_back({TimeKind::kDay, kNow, "le " + std::string(d.french), on + d.english + "s"});
  }
  for (const auto* year : kPastYears) {
    all.push_back({TimeKind::kYear, kThen, "en " + std::string(year), in + year});
  }
  for (const auto* year : kComingYears) {
    all.push_back({TimeKind::kYear, kAhead, "en " + std::string(year), in + year});
  }
  return all;
}

}  // namespace

std::span<const Noun> nouns() { return kNouns; }
std::span<const Adjective> adjectives() { return kAdjectives; }
std::span<const Verb> verbs() { return kVerbs; }
std::span<const Place> places() { return kPlaces; }
std::span<const Region> regions() { return kRegions; }
std::span<const TimePhrase> time_phrases() {
  static const std::vector<TimePhrase> all = make_time_phrases();
  return all;
}
std::span<const Name> names() { return kNames; }
std::span<const Pronoun> pronouns() { return kPronouns; }
std::span<const Tonic> tonics() { return kTonics; }
std::span<const Possessive> possessives() { return kPossessives; }
std::span<const WordPair> numbers() { return kNumbers; }
std::span<const WordPair> adverbs() { return kAdverbs; }
std::span<const WordPair> languages() { return kLanguages; }
std::span<const Play> games() { return kGames; }
std::span<const Play> instruments() { return kInstruments; }

const Verb& be() { return kBe; }
const Verb& can() { return kCan; }

const Verb& verb(std::string_view infinitive) {
  const Verb* found = kVerbs;
  while (infinitive != found->infinitive) ++found;
  return *found;
}

}  // namespace weft::toy
