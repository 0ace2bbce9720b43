// Words of code in classes, for kernel IR, CUDA C++, LLVM IR, PTX and assembly. One line at a time: no construct that these texts use
// goes over several lines, except comments of CUDA C++ that start their lines with `//` too.

const kWords = {
  "kernel IR": /^(kernel|index|note|extent|mbarrier|arrive|await|expect|arrivals|async|pending|parity|swizzled|box|panel|limit|argument|array|shared|registers|grid|thread|serial|unrolled|vector|if|else|while|load|store|barrier|reduce|shuffle|multiply|atomic|copy|wait|read|write|align|select|for|in|return)$/,
  "CUDA C++": /^(const|constexpr|extern|static|inline|struct|template|typename|using|return|if|else|for|while|do|switch|case|break|continue|unsigned|signed|asm|volatile|alignas|sizeof|__\w+__|reinterpret_cast|static_cast|true|false)$/,
  "LLVM IR": /^(define|declare|ret|br|phi|load|store|getelementptr|inbounds|call|tail|add|sub|mul|fadd|fsub|fmul|fdiv|fneg|icmp|fcmp|select|alloca|shl|lshr|ashr|and|or|xor|trunc|sext|zext|bitcast|insertelement|extractelement|shufflevector|switch|unreachable|label|nsw|nuw|align|to|attributes|metadata|target|freeze)$/,
  "PTX": /^(\.\w+|[a-z]+[\w.]*(?=\.)|ret|bra|bar|mov|ld|st|add|sub|mul|mad|fma|setp|cvt|cp|and|or|shl|shr|selp|neg|abs|min|max)$/,
  "Python": /^(def|class|return|if|elif|else|for|while|in|not|and|or|is|lambda|import|from|as|with|yield|None|True|False|assert|raise|try|except|finally|pass|break|continue|global|nonlocal|del|async|await)$/,
  "assembly": /^(\.\w+|[a-z]\w*)$/,
};
const kTypes = /^(void|bool|char|short|int|long|float|double|half|auto|ptr|index|pred|u?int\d+_t|[usfib]\d+|bf16|f8\w*|i\d+|size_t)$/;
// Comments, texts, names with what precedes them (%, @, $, .), numbers, spaces, other characters.
const kPythonTokens = /(#.*)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(@?[A-Za-z_]\w*)|(\b\d[\d.]*(?:e[+-]?\d+)?\b)|(\s+)|([^\s\w])/g;
const kTokens = /(\/\/.*|^\s*[;#].*|\s;.*)|("(?:[^"\\]|\\.)*")|([%@$.]?[A-Za-z_][\w.$]*)|(\b(?:0[xXfFdD][\da-fA-F]+|\d[\d.]*(?:e[+-]?\d+)?f?)\b)|(\s+)|([^\s\w])/g;

// The class of a word; null for none.
function classOfWord(word, language, isFirst) {
  if (language !== "Python" && kTypes.test(word)) return "type";
  if (language === "assembly" || language === "PTX") {
    if (word[0] === "%" || word[0] === "$") return "name";
    return isFirst || (language === "PTX" && word[0] === ".") ? "keyword" : null;
  }
  if (kWords[language] && kWords[language].test(word)) return "keyword";
  return word[0] === "%" || word[0] === "@" ? "name" : null;
}

// [[text, class or null], ...]: the text of a line in pieces.
function tokensOf(line, language) {
  const pieces = [];
  const add = (text, kind) => {
    const last = pieces[pieces.length - 1];
    if (last && last[1] === kind) last[0] += text;
    else pieces.push([text, kind]);
  };
  let end = 0, isFirst = true;
  for (const match of line.matchAll(language === "Python" ? kPythonTokens : kTokens)) {
    if (match.index > end) add(line.slice(end, match.index), null);
    end = match.index + match[0].length;
    const [text, comment, quoted, word, number] = match;
    if (comment !== undefined) add(text, "comment");
    else if (quoted !== undefined) add(text, "quoted");
    else if (word !== undefined) {
      add(text, classOfWord(word, language, isFirst));
      isFirst = false;
    } else add(text, number !== undefined ? "digits" : null);
  }
  if (end < line.length) add(line.slice(end), null);
  return pieces;
}

// The pieces of a line as nodes.
function colouredNodes(line, language) {
  return tokensOf(line, language).map(([piece, kind]) => kind ? element("span", {class: kind}, piece) : piece);
}
